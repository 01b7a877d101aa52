# SPDX-License-Identifier: GPL-2.0
# bash completion for roan: /usr/share/bash-completion/completions/roan. Commands, options and kinds of arguments come from
# the tool's own help, parameters from the device.
_roan() {
	local cur prev words cword usage line reply=''
	_init_completion -n = || return
	usage=$(roan --help 2> /dev/null | sed -n 's/^    roan /roan /p')
	if [ "$cword" = 1 ]; then
		reply=$(grep -oE 'roan \[?[a-z]+' <<< "$usage" | sed 's/.*[ [(]//')
	elif [ "${words[1]}" = vm ]; then
		case $prev in
		--writable) _filedir -d; return ;;
		-*) ;;
		*) reply="-- $(roan vm --help 2> /dev/null | grep -oE -- '--[a-z]+')" ;;
		esac
	elif [ "${words[1]}" = cc ] && [ "$cword" = 2 ]; then
		reply="show set"
	elif [ "${words[1]}" = cc ] && [ "$cword" -gt 3 ]; then
		reply=$(roan cc show "${words[3]}" 2> /dev/null | cut -d' ' -f1)
		[ "${words[2]}" = show ] || { reply=$(sed 's/$/=/' <<< "$reply"); compopt -o nospace; }
	else
		line=$(grep -E "roan ${words[1]}( |\$)" <<< "$usage" | grep -oE "roan ${words[1]} .*" | sed 's/  .*//; s/, roan.*//')
		case $cur in
		-*) reply=$(grep -oE -- '-(-?[a-z]+)' <<< "$line") ;;
		*)
			[[ $line != *DEV* ]] || reply+=" $(rdma link show 2> /dev/null | sed -nE 's|^link ([^/]*)/.*|\1|p')"
			[[ $line != *IF* ]] || reply+=" $(command ls /sys/class/net)"
			[[ $line != *FILE* ]] || { _filedir; return; } ;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W '$reply' -- "$cur" | sort -u)
}
complete -F _roan roan
