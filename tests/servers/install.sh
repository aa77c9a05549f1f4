#!/bin/sh
# Install from Debian's packages the servers that the tests need and this machine lacks.
# Only root on a machine with apt-get can; elsewhere it says what is missing and changes nothing.
set -eu

present() {
    command -v "$1" >/dev/null 2>&1
}

missing=
present redis-server || missing="$missing redis-server"
if ! present prometheus || ! present promtool; then
    missing="$missing prometheus"
fi
present postgres || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 ||
    missing="$missing postgresql"

if ! present java || ! present mvn; then
    echo "servers: Apache Kafka needs java (17 or later) and mvn on the PATH" >&2
fi
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! present apt-get; then
    echo "servers: not on this machine:$missing; the tests that need them will be skipped" >&2
    exit 0
fi

echo "servers: installing$missing" >&2
# The tests start servers of their own on free ports, so the packages must not start theirs.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 130' INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -qq -o DPkg::Lock::Timeout=300 update >&2
# shellcheck disable=SC2086 # a list of package names
apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
    install --no-install-recommends $missing >&2
if present systemctl; then
    # shellcheck disable=SC2086 # likewise
    systemctl disable --quiet $missing >/dev/null 2>&1 || true
fi
