#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Who may: what another user can do to a mount, and what hostile names, links and
# files that others made can do to one. Needs root, who is anybody by turns.
# shellcheck disable=SC2016,SC2030,SC2031
# bats file_tags=sqlite:local

load helpers

# Users whom every Debian knows: fusermount3 asks for their names.
OWNER=65534 # nobody
OTHER=1     # daemon
GROUP=65534
MEMBER=2 # bin; of GROUP where a test says so

setup_file() { build_clients try fill; }

# Others must be able to walk to the mount, and to what they run.
setup() {
	spool_setup
	PUBLIC=$(mktemp -d "${TMPDIR:-/tmp}/spoolfs-test.XXXXXX")
	chmod 755 "$PUBLIC"
	cp "$CLIENTS/try" "$SPOOLFS_BUILD/spoolfs" "$SPOOLFS_BUILD/spoolfs-announcer" "$PUBLIC"
	export PUBLIC
}
teardown() {
	local status=0
	spool_teardown || status=1
	rm -rf --one-file-system "$PUBLIC"
	return "$status"
}

# as UID[:GID] COMMAND...
as() {
	setpriv --reuid="${1%:*}" --regid="${1#*:}" --clear-groups "${@:2}"
}

# public [OPTIONS [SOURCE]]: mounts DB where everybody can walk to, as Q.
public() {
	Q=$PUBLIC/q
	mkdir -p "$Q"
	chmod 777 "$Q"
	echo "$Q" >> "$BASE/mounts"
	spool ${1:+-o "$1"} "${2:-$DB}" "$Q"
	DAEMON=$(spool_pid "$Q")
}

# may UID:GID RESULT CALL PATH...: try says RESULT to that user; CALL may be list.
may() {
	local who=$1 want=$2 got
	shift 2
	if [ "$1" = list ]; then
		got=$(as "$who" ls "$2" 2>&1 > "$PUBLIC/listed") && got=ok
		[[ $got != *'Permission denied' ]] || got=EACCES
	else
		got=$(as "$who" "$PUBLIC/try" "$@") || :
	fi
	[ "$got" = "$want" ] || {
		echo "expected $want, got $got for $who from: $*"
		return 1
	}
}

# ---- a mount that is not shared ---------------------------------------------------

# closed UID:GID: he can do nothing at all there, of which all that is left intact.
closed() {
	local who=$1 call
	may "$who" EACCES list "$Q"
	for call in stat read open-write open-append open-trunc unlink utimens chmod truncate; do
		may "$who" EACCES "$call" "$MSG"
	done
	for call in read open-write open-append utimens; do
		may "$who" EACCES "$call" "$Q/.control"
	done
	for call in .next .status.json .metrics ".peek/${MSG##*/}"; do
		may "$who" EACCES read "$Q/$call"
	done
	for call in create create-excl mkdir mknod; do
		may "$who" EACCES "$call" "$Q/x"
	done
	may "$who" EACCES rename "$MSG" "$Q/y"
	may "$who" EACCES rename "$MSG" "$PUBLIC/y"
	may "$who" EACCES link "$MSG" "$Q/y"
	refuse '' as "$who" getfattr -d -m - "$MSG"
	refuse '' as "$who" df "$Q"
}

# stays UID:GID: whatever he does, the mount goes on.
stays() {
	local who=$1 pid
	refuse '' as "$who" fusermount3 -u "$Q"
	refuse '' as "$who" fusermount3 -uz "$Q"
	refuse '' as "$who" umount "$Q"
	for pid in "$DAEMON" "$(announcer_pid "$Q")"; do
		refuse 'not permitted' as "$who" kill -TERM "$pid"
		refuse 'not permitted' as "$who" kill -KILL "$pid"
		refuse 'not permitted' as "$who" kill -STOP "$pid"
		refuse 'ermission denied' as "$who" cat "/proc/$pid/environ"
		refuse 'ermission denied' as "$who" ls "/proc/$pid/fd"
	done
}

@test "who: a mount of root: others neither see nor change nor end it" {
	public
	put job
	for who in "$OTHER:$OTHER" "$OTHER:0"; do
		closed "$who"
		stays "$who"
	done
	repolled
	expect 1 listed
	expect 1 control depth
	expect 0 inflight
	expect 0 dead
	expect 0 drafts
	expect job cat "$MSG"
}

# As users mount it. /dev/fuse is everybody's on a system with udev, and not in
# every container: so it is in a mount namespace of its own, with our like of it.
unprivileged() {
	as "$OWNER" test -w /dev/fuse || mknod -m 666 "$PUBLIC/fuse" c 10 229
	mkdir "$PUBLIC/home" "$PUBLIC/q"
	chown "$OWNER:$GROUP" "$PUBLIC/home" "$PUBLIC/q"
	export -f as may refuse spool_pid
	export OWNER GROUP OTHER
	timeout 60 unshare --mount --propagation private bash -euc '
		[ ! -e "$PUBLIC/fuse" ] || mount --bind "$PUBLIC/fuse" /dev/fuse
		export HOME=$PUBLIC/home Q=$PUBLIC/q DB=$PUBLIC/home/q.db
		trap "umount -l $Q 2> /dev/null || :" EXIT
		soon() { for _ in {1..250}; do "$@" 2> /dev/null && return; sleep 0.02; done; "$@"; }
		eval "$1"' _ "$1" 3>&- 4>&-
	wait_until 20 not_served "$PUBLIC/q"
}

@test "who: a mount by a user without privileges is closed to others and to root" {
	unprivileged '
		as "$OWNER:$GROUP" "$PUBLIC/spoolfs" "$DB" "$Q"
		as "$OWNER:$GROUP" sh -c "echo hi > $Q/x"
		soon as "$OWNER:$GROUP" sh -c "ls $Q | grep -q x"
		for who in "$OTHER:$OTHER" "$OTHER:$GROUP" 0:0; do
			may "$who" EACCES list "$Q"
			may "$who" EACCES read "$Q/.control"
			may "$who" EACCES open-write "$Q/.control"
			may "$who" EACCES create "$Q/y"
		done
		pid=$(spool_pid "$Q")
		refuse "" as "$OTHER:$OTHER" fusermount3 -u "$Q"
		refuse "" as "$OTHER:$OTHER" umount "$Q"
		refuse "not permitted" as "$OTHER:$GROUP" kill "$pid"
		refuse "" as "$OTHER:$GROUP" cat "$DB"
		test "$(stat -c %u:%a "$DB" "$DB-wal" "$DB-shm" "$DB-lock" | sort -u)" = "$OWNER:600"
		# It is there still, and its owner ends it.
		test "$(as "$OWNER:$GROUP" sh -c "cat $Q/*")" = hi
		soon as "$OWNER:$GROUP" fusermount3 -u "$Q"'
}

@test "who: a user without privileges shares nothing that the system does not allow" {
	if grep -q '^user_allow_other' /etc/fuse.conf; then
		# Here it is allowed: this test looks at a system where it is not.
		: > "$BASE/fuse.conf"
		mount --bind "$BASE/fuse.conf" /etc/fuse.conf
		echo /etc/fuse.conf >> "$BASE/others"
	fi
	unprivileged '
		refuse allow_other as "$OWNER:$GROUP" "$PUBLIC/spoolfs" -o allow_other "$DB" "$Q"
		refuse "" mountpoint -q "$Q"'
}

# ---- a mount that is shared -------------------------------------------------------

# digit UMASK CLASS: what it leaves of rwx to owner (0), group (1) or others (2).
digit() { echo $((7 & ~(8#$1 >> (3 * (2 - $2))))); }

# right MASK: ok when BITS has all of MASK.
right() { (((bits & $1) == $1)) && echo ok || echo EACCES; }

# row UMASK: the calls of each class, against what the bits say. Of a directory
# they are: list, change, go in; each file needs that, too.
row() {
	local class=0 who bits
	for who in "$OWNER:$OTHER" "$MEMBER:$GROUP" "$OTHER:$OTHER"; do
		bits=$(digit "$1" "$class")
		may "$who" "$(right 4)" list "$Q"
		may "$who" "$(right 5)" list "$Q/.dead"
		may "$who" "$(right 1)" stat "$Q/.control"
		may "$who" "$(right 5)" read "$Q/.control"
		may "$who" "$(right 5)" read "$Q/.status.json"
		may "$who" "$(right 5)" read "$Q/.peek/$(name_of job)"
		may "$who" "$(right 5)" read "$Q/$(name_of "read-$class")"
		may "$who" "$(right 3)" open-write "$Q/.control"
		may "$who" "$(right 3)" open-append "$Q/.control"
		may "$who" "$(right 3)" create "$Q/by-$class"
		# Who may change the directory may delete what is in it.
		may "$who" "$(right 3)" unlink "$Q/$(name_of "rm-$class")"
		may "$who" "$(right 3)" rename "$Q/$(name_of "rename-$class")" "$Q/to-$class"
		# Modes are for the owner alone to change.
		[ "$class" = 0 ] || [ "$(right 1)" != ok ] ||
			may "$who" EPERM chmod "$Q/$(name_of job)"
		class=$((class + 1))
	done
}
name_of() { basename "$(ls -d "$Q/.peek/"*"-$1")"; }

@test "who: allow_other with uid, gid and umask gives what it says" {
	for mask in 000 022 027 077 0137 0776; do
		public "allow_other,uid=$OWNER,gid=$GROUP,umask=$mask,claims=shared,rm_unread=delete"
		for given in job {rm,read,rename}-{0,1,2}; do
			echo "$given" > "$Q/$given"
		done
		wait_listed 10
		expect "$OWNER $GROUP $(printf %o $((0777 & ~8#$mask)))" stat -c '%u %g %a' "$Q"
		expect "$OWNER $GROUP $(printf %o $((0666 & ~8#$mask)))" stat -c '%u %g %a' \
			"$Q/$(name_of job)"
		echo "umask=$mask"
		row "$mask"
		spool_umount "$Q"
		rm "$DB"*
	done
}

@test "who: a draft is its writer's, as a file would be" {
	public allow_other,umask=000
	as "$OWNER" sh -c 'umask 077; echo secret > "$0/.draft"' "$Q"
	expect "$OWNER 600" stat -c '%u %a' "$Q/.draft"
	for who in "$OTHER:$OTHER" "$MEMBER:$GROUP"; do
		for call in read open-append open-trunc; do
			may "$who" EACCES "$call" "$Q/.draft"
			may "$who" EACCES "$call" "$Q/.drafts/$(ls "$Q/.drafts")"
		done
		may "$who" EPERM chmod "$Q/.draft"
	done
	may "$OWNER" ok read "$Q/.draft"
}

# ---- files ------------------------------------------------------------------------

# modes PATH...: "MODE NAME" of each, without the directory.
modes() { stat -c '%a %n' "$@" | sed 's|/.*/||'; }

@test "who: the queue's files are for nobody else, whatever the umask" {
	umask 000
	mkdir -m 777 "$BASE/open"
	public '' "$BASE/open/q.db"
	put job
	expect '600' eval 'stat -c %a "$BASE"/open/* | sort -u'
	expect 'q.db q.db-lock q.db-shm q.db-wal' eval 'ls "$BASE/open" | xargs'
	spool_kill "$Q"
	expect '600' eval 'stat -c %a "$BASE"/open/* | sort -u'
}

# far OPTIONS: mounts a queue of a service that is not there.
far() {
	export AZURE_STORAGE_CONNECTION_STRING='UseDevelopmentStorage=true'
	DB=azure-queue+http://127.0.0.1:9/devstoreaccount1/jobs
	public "$1"
}

@test "who: the state of a far queue is for nobody else, whatever the umask" {
	umask 000
	far "state=$BASE/a/b"
	echo secret > "$Q/x"
	expect 700 stat -c %a "$BASE/a/b"
	expect 700 stat -c %a "$BASE/a"
	expect 600 eval 'stat -c %a "$BASE"/a/b/* | sort -u'
	at_least 3 eval 'ls "$BASE/a/b" | wc -l'
	spool_kill "$Q"
	expect 600 eval 'stat -c %a "$BASE"/a/b/* | sort -u'
}

@test "who: a state that others put there is not taken" {
	mkdir -m 777 "$PUBLIC/state"
	far "state=$PUBLIC/state"
	spool_umount "$Q"
	file=$(ls "$PUBLIC"/state/*.db)
	# Of another user, or writable to others: he would read what is written there.
	chown "$OTHER" "$file"
	spool_refused 'state' -o "state=$PUBLIC/state" "$DB" "$Q"
	chown 0 "$file"
	chmod 666 "$file"
	spool_refused 'state' -o "state=$PUBLIC/state" "$DB" "$Q"
	# A link, to where there is something and to where there is not.
	mv "$file" "$PUBLIC/elsewhere.db"
	chmod 600 "$PUBLIC/elsewhere.db"
	rm -f "$PUBLIC"/state/*
	for target in "$PUBLIC/elsewhere.db" "$PUBLIC/nowhere.db"; do
		ln -sf "$target" "$file"
		chown -h "$OTHER" "$file"
		spool_refused 'state' -o "state=$PUBLIC/state" "$DB" "$Q"
		rm "$file"
	done
	not test -e "$PUBLIC/nowhere.db"
	not is_mounted "$Q"
}

# Without HOME and what else says where state belongs, it is in /tmp, which is
# everybody's: here it is one of our own.
@test "who: a directory for state in /tmp that another made is not taken" {
	mkdir -m 1777 "$PUBLIC/tmp"
	cp "$PUBLIC/spoolfs" "$PUBLIC/tmp"
	export -f as refuse
	export OTHER AZURE_STORAGE_CONNECTION_STRING='UseDevelopmentStorage=true'
	timeout 60 unshare --mount --propagation private bash -euc '
		mount --bind "$PUBLIC/tmp" /tmp
		far=azure-queue+http://127.0.0.1:9/devstoreaccount1/jobs
		try() {
			as "$OTHER" env -u HOME -u XDG_STATE_HOME -u STATE_DIRECTORY \
				timeout 5 /tmp/spoolfs run --drain "$far" -- true
		}
		dir=/tmp/spoolfs-state-$OTHER
		refused() { refuse "no place for state" try; test -z "$(ls "$dir")"; rm -r "$dir"; }
		mkdir -m 777 "$dir" && refused
		mkdir -m 700 "$dir" && refused
		mkdir -m 755 "$dir" && chown "$OTHER" "$dir" && refused
		mkdir -m 700 /tmp/theirs && chown "$OTHER" /tmp/theirs
		ln -s /tmp/theirs "$dir" && refused
		test -z "$(ls /tmp/theirs)"
		ln -s /tmp/none "$dir" && refuse "no place for state" try
		test ! -e /tmp/none && rm "$dir"
		# And with nothing in the way it is made, for nobody else.
		refuse "state is kept in $dir" try
		test "$(stat -c "%u %a" "$dir")" = "$OTHER 700"
		test "$(stat -c %a "$dir"/* | sort -u)" = 600' 3>&- 4>&-
}

# ---- names ------------------------------------------------------------------------

# What a queue file may hold that somebody else has written.
hostile_names() {
	cat << 'EOF'
'../x'
'../../../../etc/x'
'/etc/x'
'..'
'.'
'/'
'.control'
'.dead/x'
'a/../../x'
'%2e%2e%2fx'
char(10)
'a' || char(10) || 'b'
char(27) || '[2J'
CAST(x'610062' AS TEXT)
CAST(x'ff2fc3' AS TEXT)
CAST(x'eda080c0ae' AS TEXT)
x'2e2e2f78'
printf('%.*c', 5000, 'x')
printf('%.*c', 300, '/')
EOF
}

# before: what is outside of the mount; a name that leaves it changes that.
outside() { find "$PUBLIC" -xdev ! -path "$Q/*" | sort; }

@test "who: no name in a queue file leaves the directory" {
	public
	put job
	spool_umount "$Q"
	n=100
	while read -r name; do
		n=$((n + 1))
		sqlite3 "$DB" "INSERT INTO body VALUES($n, x'68690a');
			INSERT INTO message(id, enqueued_us, size, given)
			VALUES($n, 1795148100000000 + $n, 3, $name);
			UPDATE state SET last_id = $n, waiting = waiting + 1;"
	done < <(hostile_names)
	n=$((n - 100))
	outside > "$BASE/before"
	public
	wait_listed $((n + 1))
	# What is no text is no name; the message is there all the same.
	expect $((n + 1)) eval 'ls "$Q" | wc -l'
	ls "$Q" > "$BASE/names"
	not grep -qv '^2026[0-9]*T[0-9]*\.[0-9]*Z-0000' "$BASE/names"
	not grep -qP '[\x00-\x1f\x7f/]' "$BASE/names"
	outside | diff "$BASE/before" -
	# Each can be worked on by its name.
	while read -r name; do
		expect 1 eval 'cat "$Q/$name" | wc -l'
		tries ok unlink "$Q/$name"
	done < "$BASE/names"
	sync "$Q/.control"
	expect 0 control depth
	outside | diff "$BASE/before" -
}

@test "who: no draft's name leaves the directory" {
	public
	echo text > "$Q/.mine"
	spool_kill "$Q"
	mount=$(sqlite3 "$DB" 'SELECT mount FROM draft')
	n=100
	while read -r name; do
		n=$((n + 1))
		sqlite3 "$DB" "INSERT INTO body VALUES($n, x'68690a');
			INSERT INTO draft SELECT $n, $mount, $name, begun_ns + $n, 33261, 0, 0, 3, 0
				FROM draft WHERE name = '.mine';
			UPDATE state SET last_id = $n;"
	done < <(hostile_names)
	n=$((n - 100 + 1))
	force_umount "$Q"
	outside > "$BASE/before"
	public
	expect "$n" drafts
	expect "$n" eval 'ls "$Q/.drafts" | wc -l'
	ls "$Q/.drafts" > "$BASE/names"
	# Sent under the names that they have, or discarded.
	while read -r name; do
		[[ $((n++ % 2)) = 0 ]] || tries ok rename "$Q/.drafts/$name" "$Q/$name"
		[ ! -e "$Q/.drafts/$name" ] || tries ok unlink "$Q/.drafts/$name"
	done < "$BASE/names"
	expect 0 drafts
	sync "$Q/.control"
	wait_listed 10
	expect 10 eval 'ls "$Q" | wc -l'
	outside | diff "$BASE/before" -
}

@test "who: no alias in a claim's record leaves the directory" {
	for alias in ../x .. a/b /; do
		public
		put job
		put other
		# Its owner is this shell: the claim outlives the daemon.
		exec 8< "$(message job)"
		read -r -u 8 line
		[ "$line" = job ]
		sync "$Q/.control"
		wait_until 10 eval 'sqlite3 "$DB" "SELECT record FROM message" | grep -q :'
		spool_kill "$Q"
		exec 8<&-
		force_umount "$Q"
		sqlite3 "$DB" "UPDATE message SET record = record || char(10) || '$alias'
			WHERE record IS NOT NULL"
		outside > "$BASE/before"
		public retry_delay=0s
		# The record is none of ours: as if its owner had died, it comes back.
		wait_listed 2
		expect 2 eval 'ls "$Q" | wc -l'
		expect 0 eval 'ls "$Q/.inflight" | wc -l'
		expect job cat "$(message job)"
		outside | diff "$BASE/before" -
		spool_umount "$Q"
		rm "$DB"*
	done
}

# ---- links ------------------------------------------------------------------------

@test "who: a link beside the queue file is not followed" {
	umask 022
	mkdir -m 1777 "$PUBLIC/spool"
	echo secret > "$PUBLIC/secret"
	chmod 600 "$PUBLIC/secret"
	stat -c '%u %a %s' "$PUBLIC/secret" > "$BASE/before"
	DB=$PUBLIC/spool/q.db
	Q=$PUBLIC/q
	mkdir "$Q"
	echo "$Q" >> "$BASE/mounts"
	for what in '' -lock -wal -shm -journal; do
		# SQLite does without a journal that is none.
		as "$OTHER" ln -s "$PUBLIC/secret" "$DB$what"
		case $what in
		-wal | -journal) public && spool_umount "$Q" ;;
		*) spool_refused '' "$DB" "$Q" ;;
		esac
		expect secret cat "$PUBLIC/secret"
		stat -c '%u %a %s' "$PUBLIC/secret" | diff "$BASE/before" -
		rm -f "$DB"*
		# To where there is nothing: nothing is made there.
		as "$OTHER" ln -s "$PUBLIC/none" "$DB$what"
		spool_refused '' "$DB" "$Q"
		not test -e "$PUBLIC/none"
		rm -f "$DB"*
	done
}

@test "who: a queue file that is another's stays his" {
	mkdir "$PUBLIC/spool"
	chown "$OTHER" "$PUBLIC/spool"
	DB=$PUBLIC/spool/q.db
	as "$OTHER:$OTHER" timeout 10 "$PUBLIC/spoolfs" run --drain "$DB" -- true
	# root may use it; what it makes beside it belongs to him, too.
	public
	put job
	expect "$OTHER 600" eval 'stat -c "%u %a" "$PUBLIC"/spool/* | sort -u'
	spool_umount "$Q"
	as "$OTHER:$OTHER" timeout 10 "$PUBLIC/spoolfs" run --drain "$DB" -- cat > "$BASE/got"
	expect job cat "$BASE/got"
	# Nobody else may, without rights to the file.
	chmod 755 "$PUBLIC/spool"
	refuse 'ermission' as "$MEMBER:$GROUP" timeout 10 "$PUBLIC/spoolfs" run --drain "$DB" -- true
}

# ---- .control ---------------------------------------------------------------------

@test "who: what is behind a NUL is no comment: such a line is no command" {
	public
	for line in 'pause\0\n' 'pause\0resume\n' '\0\n' 'set poll_floor=2s\0\n'; do
		refuse 'Invalid argument' bash -c 'printf "$1" > "$2/.control"' _ "$line" "$Q"
	done
	# The last line is told of at close(), which bash does not look at.
	printf 'pause\0' > "$Q/.control"
	not is paused control state
	expect 1000 control backoff_floor_ms
	printf 'pause' > "$Q/.control"
	expect paused control state
}
