#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Nothing of a key, a signature or a token is to be seen anywhere; TLS trusts
# nobody unknown.
# shellcheck disable=SC2016,SC2030,SC2031

export SPOOL_BACKEND=azure
load helpers

setup_file() { build_clients fill; }

# Azurite with a certificate of its own; the source is SECURE then.
azurite_tls() {
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
		-addext 'subjectAltName=IP:127.0.0.1,DNS:localhost' \
		-keyout "$BASE/key.pem" -out "$BASE/cert.pem" 2> "$BASE/openssl"
	plain=$AZURITE_URL
	azurite_start "$BASE/tls" --inMemoryPersistence --cert "$BASE/cert.pem" --key "$BASE/key.pem"
	SECURE=$AZURE/$QUEUE
	echo "$(< "$BASE/tls/pid")" >> "$BASE/pids"
	AZURITE_URL=$plain
}

# secret VALUE...: from now on none of them may be seen. A key is looked for in
# parts as well, and as a URL has it.
secret() {
	local value
	for value; do
		printf '%s\n' "$value" "${value:10:24}" "${value//+/%2B}" "${value//\//%2F}"
	done | awk 'length >= 16' | sort -u > "$BASE/secrets"
	[ -s "$BASE/secrets" ]
}

# secret_signature TOKEN: as it is in the token, and decoded.
secret_signature() {
	local signature=${1#*sig=}
	signature=${signature%%&*}
	secret "$signature" "$(printf '%b' "${signature//%/\\x}")"
}

# unseen: what can be read of the mount, its processes and its logs has none.
unseen() {
	local pid
	mkdir -p "$BASE/seen"
	cat "$Q/.control" > "$BASE/seen/control"
	cat "$Q/.status.json" > "$BASE/seen/status"
	cat "$Q/.metrics" > "$BASE/seen/metrics"
	grep -F -- "$Q" /proc/self/mountinfo > "$BASE/seen/mounts"
	for pid in "$DAEMON" $(children "$DAEMON"); do
		tr '\0' '\n' < "/proc/$pid/cmdline" > "$BASE/seen/$pid.cmdline"
		cat "/proc/$pid/comm" > "$BASE/seen/$pid.comm"
	done
	ps -ef > "$BASE/seen/ps"
	cp "$BASE"/*.log "$BASE"/*.out "$BASE/seen/"
	find "$BASE"/state* -type f -exec cp -t "$BASE/seen/" {} +
	# There is something to look through.
	[ "$(cat "$BASE/seen"/*.log | wc -l)" -gt 10 ]
	not grep -raFl -f "$BASE/secrets" "$BASE/seen"
}

# busy: the mount sends, receives, is refused and works on.
busy() {
	"$CLIENTS/fill" "$Q" m 20
	sync "$Q/.control"
	wait_listed 20
	bash -c 'cat "$Q"/* > /dev/null; rm "$Q"/*' || :
	tell 'set debug=all'
	repolled
}

@test "a key from the environment" {
	secret "$AZURE_DEV_KEY"
	unset AZURE_STORAGE_CONNECTION_STRING
	export AZURE_STORAGE_ACCOUNT=$AZURE_DEV_ACCOUNT AZURE_STORAGE_KEY=$AZURE_DEV_KEY
	spool_mount -f debug=all
	busy
	unseen
	# One that leaked would be found.
	echo "x${AZURE_DEV_KEY:5:60}x" > "$BASE/leak.log"
	refuse leak unseen
}

@test "a connection string from the environment" {
	secret "$AZURE_DEV_KEY"
	export AZURE_STORAGE_CONNECTION_STRING
	AZURE_STORAGE_CONNECTION_STRING=$(azure_connection)
	spool_mount -f debug=all
	busy
	unseen
}

# sas [EXPIRY]: a token for the whole account.
sas() {
	node -e '
const { generateAccountSASQueryParameters: sas, AccountSASPermissions, AccountSASServices,
	AccountSASResourceTypes, StorageSharedKeyCredential, SASProtocol } =
	require("@azure/storage-queue");
const [name, key, expires] = process.argv.slice(1);
console.log(sas({ services: AccountSASServices.parse("q").toString(),
	resourceTypes: AccountSASResourceTypes.parse("sco").toString(),
	permissions: AccountSASPermissions.parse("rwdlacup"), protocol: SASProtocol.HttpsAndHttp,
	startsOn: new Date(Date.now() - 600000), expiresOn: new Date(expires) },
	new StorageSharedKeyCredential(name, key)).toString());' \
		"$AZURE_DEV_ACCOUNT" "$AZURE_DEV_KEY" "$(date -u -d "${1:-+1 hour}" +%FT%TZ)"
}

@test "a shared access signature" {
	token=$(sas)
	secret_signature "$token"
	unset AZURE_STORAGE_CONNECTION_STRING
	export AZURE_STORAGE_SAS_TOKEN=$token
	spool_mount -f debug=all
	busy
	unseen
}

@test "a shared access signature that has expired: said so, and nothing of it" {
	token=$(sas '-1 minute')
	secret_signature "$token"
	unset AZURE_STORAGE_CONNECTION_STRING
	export AZURE_STORAGE_SAS_TOKEN=$token
	spool_mount -f debug=all
	wait_until 20 bash -c 'grep -qi "^last_error=..*" "$Q/.control"'
	control last_error | grep -qiE 'expire|403|Authentication|credential'
	for _ in {1..10}; do tell poll; done
	unseen
}

@test "a file: refused when others can read it; mended, it is taken up again" {
	printf 'AZURE_STORAGE_ACCOUNT=%s\nAZURE_STORAGE_KEY=%s\n' "$AZURE_DEV_ACCOUNT" \
		"$(head -c 64 /dev/zero | base64 -w 0)" > "$BASE/key"
	unset AZURE_STORAGE_CONNECTION_STRING
	mkdir "$Q"
	chmod 640 "$BASE/key"
	spool_refused "$BASE/key" -o "credentials=$BASE/key" "$DB" "$Q"
	not_mounted "$Q"
	chmod 600 "$BASE/key"
	secret "$AZURE_DEV_KEY"
	spool_mount -f "debug=all,credentials=$BASE/key"
	wait_until 20 bash -c 'grep -q "^last_error=..*" "$Q/.control"'
	# Wrong credentials are no reason to ask again and again.
	polls=$(control polls_total)
	end=$(($(now_ms) + 3000))
	wait_until 10 clock_is "$end"
	[ $(($(control polls_total) - polls)) -le 3 ]
	echo waiting > "$Q/x"
	printf 'AZURE_STORAGE_ACCOUNT=%s\nAZURE_STORAGE_KEY=%s\n' "$AZURE_DEV_ACCOUNT" \
		"$AZURE_DEV_KEY" > "$BASE/key"
	wait_until 40 is 1 listed
	expect waiting cat "$(message)"
	busy
	unseen
}

@test "no key on the command line: there is no option for it" {
	mkdir "$Q"
	for option in key account_key sas password connection_string; do
		spool_refused "unknown option '$option'" -o "$option=x" "$DB" "$Q"
	done
	spool_refused . "azure-queue+http://$AZURE_DEV_ACCOUNT:secretsecretsecret@127.0.0.1:1/x/$QUEUE" "$Q"
	not grep -q secretsecretsecret "$BASE/spoolfs.log"
	spool_refused . "${DB}?sv=2021-12-02&sig=secretsecretsecret" "$Q"
	not grep -q secretsecretsecret "$BASE/spoolfs.log"
}

@test "TLS with an authority nobody knows is refused, with ca_file it is accepted" {
	azurite_tls
	spool_mount -s "$SECURE"
	wait_until 30 is offline control state
	control last_error | grep -qiE 'certificate|TLS|SSL|authority'
	not grep -q . <(ls "$Q")
	spool_umount
	spool_mount -s "$SECURE" "ca_file=$BASE/cert.pem"
	put job
	expect job cat "$MSG"
	rm "$MSG"
	repolled
	queue_empty
}

# A certificate for another name is nobody's.
@test "TLS: a certificate for another host is refused" {
	azurite_tls
	host=${SECURE/127.0.0.1/127.0.0.2}
	spool_mount -s "$host" "ca_file=$BASE/cert.pem" || return 0
	wait_until 30 is offline control state
}

@test "the state directory lets nobody else in" {
	spool_mount
	put job
	echo half > "$Q/x.tmp"
	expect '' find "$BASE"/state* -perm /077 -printf '%p %m\n'
}
