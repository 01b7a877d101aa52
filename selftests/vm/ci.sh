#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Tests tools/ci: the YAML files are parsed, and the commands in them run as GitHub and GitLab run them, with their variables.
# In a guest: by the module (how=module, auto). On this machine (lab `host`): in a guest of QEMU (how=vm).
#
#	action.yml, gitlab-ci.yml --> the text of `run:` or `script:` --> tools/ci/rdma.sh --> hosts.sh, or roan vm
REPO=$(readlink -f "$(dirname "$0")/../..")
. "$REPO/selftests/vm/lib.sh"
dir=$(mktemp -d /tmp/roan-ci-test.XXXXXX)
log=$dir/log
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit

# Prints the value at a path of keys in a YAML file.
value() { # FILE KEY...
	python3 - "$REPO/tools/ci/$1" "${@:2}" <<-'END'
		import sys, yaml
		node = yaml.safe_load(open(sys.argv[1]))
		for key in sys.argv[2:]:
		    node = node[int(key) if isinstance(node, list) else key]
		print("\n".join(node) if isinstance(node, list) else node)
	END
}

# The action uses each of its inputs, and no other.
inputs_used() {
	python3 - "$REPO/tools/ci/action.yml" <<-'END'
		import re, sys, yaml
		text = open(sys.argv[1]).read()
		inputs, used = set(yaml.safe_load(text)["inputs"]), set(re.findall(r"inputs\.(\w+)", text))
		sys.exit(0 if inputs == used else "differ: %s" % (inputs ^ used))
	END
}

# What a user would test: data over the fabric, in two hosts.
cat > "$dir/script" <<'END'
echo "host with $(ls /sys/class/infiniband)"
on h2 ib_write_bw -F -n 50 > /tmp/server.log 2>&1 &
until on h2 ss -Hltn 'sport = :18515' | grep -q .; do sleep 0.2; done
ib_write_bw -F -n 50 h2 | awk '$1 == 65536 { print "bandwidth", $4 }'
echo done > result
exit 3
END

action() { # HOW
	value action.yml runs steps 1 run > "$dir/step"
	SCRIPT=$(cat "$dir/script") HOSTS=2 GBPS='' RTT=$2 LOSS='' HOW=$1 WRITABLE=$3 GITHUB_ACTION_PATH=$REPO/tools/ci \
		bash --noprofile --norc -eo pipefail "$dir/step" > "$log" 2>&1
}

check_action() { # HOW RTT WRITABLE
	local rc
	rm -f result
	action "$@"
	rc=$?
	ktap_check "action.yml, how=$1: the script's status" eval "cat '$log'; [ $rc = 3 ]"
	ktap_check "action.yml, how=$1: bandwidth" grep -q '^bandwidth [1-9]' "$log"
	ktap_check "action.yml, how=$1: its file is there" grep -qx 'done' result
}

check_gitlab() {
	local rc
	rm -f result
	value gitlab-ci.yml .rdma script > "$dir/step"
	mkdir -p "$dir/roan" && ln -sfn "$REPO/tools" "$dir/roan/tools"
	RDMA_SCRIPT=$(cat "$dir/script") RDMA_HOSTS=2 RDMA_OPTIONS='--cpus 2' CI_PROJECT_DIR=$dir bash -eo pipefail "$dir/step" > "$log" 2>&1
	rc=$?
	ktap_check "gitlab-ci.yml: the script's status" eval "cat '$log'; [ $rc = 3 ]"
	ktap_check "gitlab-ci.yml: bandwidth" grep -q '^bandwidth [1-9]' "$log"
	ktap_check "gitlab-ci.yml: its file is there" grep -qx 'done' result
}

ktap_header
python3 -c 'import yaml' 2> /dev/null || { ktap_skip "all" "needs python3-yaml"; ktap_end; }
ktap_check "the action's inputs are used" inputs_used
if command -v yamllint > /dev/null; then
	ktap_check "yamllint" yamllint -d '{extends: relaxed, rules: {line-length: {max: 150}}}' "$REPO/tools/ci"
else
	ktap_skip "yamllint" "not installed"
fi
if [ "${LAB:-host}" = host ]; then
	check_gitlab
	check_action vm '' "$dir"
else
	ROAN_KO=$(roan_ko) && export ROAN_KO
	check_action module '' ''
	check_action auto 2ms ''
	ktap_check "the module is removed" [ ! -e /sys/module/roan ]
	ktap_check "the hosts are removed" eval "! ip netns list | grep . && ! grep '# roan' /etc/hosts"
	"$REPO/tools/ci/rdma.sh" --how module --memory 2G -- true > "$log" 2>&1
	ktap_check "an option of roan vm is refused for the module" eval "[ $? = 125 ] && grep -q -- '--memory is an option for --how vm' '$log'"
fi
ktap_end
