# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Azurite, Microsoft's client beside it, and the fault server between. Everything
# listens on loopback and is ended by its pid.
#
#   AZURITE_URL  http://127.0.0.1:PORT of the running Azurite
#   AZURE        the emulator's account there, as part of a source

# The emulator's published account.
AZURE_DEV_ACCOUNT=devstoreaccount1
AZURE_DEV_KEY=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==
TESTS_DIR=$(realpath "${BASH_SOURCE[0]%/*}/..")
AZURITE_JS=${NODE_PATH:=$TESTS_DIR/../build/node/node_modules}/azurite/dist/src/queue/main.js
export NODE_PATH

# azurite_start DIR [ARGUMENT...]: its messages are kept in DIR (but with
# --inMemoryPersistence), its port and pid
# in DIR/port and DIR/pid; started again there, it comes back on the same port.
# Ended in a hurry (KILL) it forgets its last seconds: end it with azurite_stop.
azurite_start() {
	local dir=$1 port=0
	shift
	mkdir -p "$dir"
	[ ! -e "$dir/port" ] || port=$(< "$dir/port")
	# Not a process of the test that happens to start it.
	(cd "$dir" && unset SPOOLFS_TEST && exec node "$AZURITE_JS" --silent --disableTelemetry \
		--skipApiVersionCheck --queuePort "$port" "$@") \
		> "$dir/out" 2>&1 3>&- 4>&- < /dev/null &
	echo $! > "$dir/pid"
	wait_until 20 grep -q 'listens on' "$dir/out" || {
		cat "$dir/out"
		return 1
	}
	AZURITE_URL=$(sed -n 's/.*listens on //p' "$dir/out")
	echo "${AZURITE_URL##*:}" > "$dir/port"
	export AZURITE_URL AZURE=azure-queue+$AZURITE_URL/$AZURE_DEV_ACCOUNT
}

# azurite_stop DIR: it keeps what it has answered.
azurite_stop() {
	local pid
	pid=$(< "$1/pid")
	kill "$pid" 2> /dev/null || return 0
	wait_until 10 gone "$pid" || kill -KILL "$pid"
	wait "$pid" 2> /dev/null || :
}

# azure_connection [URL]: what clients want to be told of the account.
azure_connection() {
	local url=${1:-$AZURITE_URL}
	echo "DefaultEndpointsProtocol=${url%%:*};AccountName=$AZURE_DEV_ACCOUNT;AccountKey=$AZURE_DEV_KEY;QueueEndpoint=$url/$AZURE_DEV_ACCOUNT;"
}

# sdk COMMAND QUEUE [ARGUMENT...]: clients/azure_sdk.js against URL (Azurite's).
sdk() {
	AZURE_STORAGE_CONNECTION_STRING=$(azure_connection "${URL:-$AZURITE_URL}") \
		timeout "${SDK_TIMEOUT:-60}" node "$TESTS_DIR/fs/clients/azure_sdk.js" "$@"
}

# faults_start: the fault server, in FAULTS_URL, until faults_stop. A mount that
# finds it gone at its end tries for a while: end that first.
faults_start() {
	env -u SPOOLFS_TEST node "$TESTS_DIR/faults/azure_faults.js" "$AZURITE_URL" \
		> "$BASE/faults.out" 2> "$BASE/faults.log" 3>&- 4>&- < /dev/null &
	echo $! > "$BASE/faults.pid"
	wait_until 10 grep -q listening "$BASE/faults.out"
	FAULTS_URL=http://127.0.0.1:$(awk '{ print $2 }' "$BASE/faults.out")
	export FAULTS_URL FAULTY=azure-queue+$FAULTS_URL/$AZURE_DEV_ACCOUNT
}

faults_stop() {
	[ -e "$BASE/faults.pid" ] || return 0
	kill "$(< "$BASE/faults.pid")" 2> /dev/null || :
	wait_until 10 gone "$(< "$BASE/faults.pid")"
}

# faults PLAN: it does as this JSON says from now on.
faults() { curl -sSf -o "$BASE/faults.said" -T - "$FAULTS_URL/_faults" <<< "$1"; }

# faulted FILTER: what jq finds in its counts.
faulted() { curl -sSf "$FAULTS_URL/_faults" | jq -r "$1"; }
