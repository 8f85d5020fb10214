# bash completion of rocefs: commands and options are those of --help.
_rocefs() {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local command=${COMP_WORDS[1]} help commands at taken= first=0
  COMPREPLY=()
  commands=$("$program" --help 2>/dev/null | sed -n 's/^\(usage:\)\{0,1\} *rocefs \([a-z][a-z]*\) .*/\2/p' | sort -u)
  if [ "$COMP_CWORD" -eq 1 ]; then
    help=$("$program" --help 2>/dev/null) command=
  elif grep -qxF -- "$command" <<<"$commands"; then
    help=$("$program" "$command" --help 2>/dev/null) commands=
    # Behind "--", and at enter's first word that is no option, stands somebody's command.
    for ((at = 2; at <= COMP_CWORD; ++at)); do
      case ${COMP_WORDS[at]} in
        -m) at=$((at + 1)) ;;
        --) [ "$at" -eq "$COMP_CWORD" ] || first=$((at + 1)) && break ;;
        -*) ;;
        *) [ "$command" != enter ] || { first=$at && break; } ;;
      esac
    done
    if [ "$first" -gt 0 ]; then
      if declare -F _command_offset >/dev/null; then
        _command_offset "$first"
      elif [ "$first" -eq "$COMP_CWORD" ]; then
        COMPREPLY=($(compgen -c -- "$word"))
      fi
      return
    fi
  else
    help=$("$program" --help 2>/dev/null) commands=
    # A list of options of -o, of which bash may have made several words.
    for ((at = COMP_CWORD - 1; at > 0; --at)); do
      [ "${COMP_WORDS[at]}" != -o ] || break
      [[ ${COMP_WORDS[at]} == *[=:]* || ${COMP_WORDS[at + 1]} == [=:]* ]] || at=1
    done
    if [ "$at" -gt 0 ] && [[ $word != = ]]; then
      [[ $word == *,* ]] && taken=${word%,*},
      COMPREPLY=($(compgen -P "$taken" -W "$(sed -n '/^options after -o:/,/^$/s/^  //p' <<<"$help" | sed 's/   .*//; s/=[^,]*/=/g; s/[^a-z_,= ].*//' |
        tr -d ' ' | tr ',' '\n')" -- "${word##*,}"))
      [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
      return
    fi
  fi
  case $word in
    -*) COMPREPLY=($(compgen -W "$(sed -n 's/^  \(-.*\)/\1/p' <<<"$help" | sed 's/   .*//' | grep -oE -- '--?[A-Za-z][a-z-]*')" -- "$word")) ;;
    *)
      case $command:$before in
        host:host | attach:attach | detach:detach)
          COMPREPLY=($(compgen -W "$(ls "${ROCEFS_MOUNT:-/}/kernel/debug/rocefs/hosts" 2>/dev/null)" -- "$word")) ;;
        top:--screen) COMPREPLY=($(compgen -W "devices links queues flows" -- "$word")) ;;
        sim:* | attach:--netns) COMPREPLY=($(compgen -f -- "$word")) ;;
        *) COMPREPLY=($(compgen -W "$commands" -- "$word") $(compgen -d -- "$word")) ;;
      esac
      compopt -o filenames 2>/dev/null
      ;;
  esac
}
complete -F _rocefs rocefs
