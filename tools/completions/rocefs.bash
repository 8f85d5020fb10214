# bash completion of rocefs: commands and options are those of --help.
_rocefs_files() {  # WORD [PREFIX]
  mapfile -t COMPREPLY < <(compgen ${2:+-P "$2"} -f -- "$1")
  compopt -o filenames 2>/dev/null
}
# A list of options of -o, of which bash may have made several words. Fails where the cursor is in none.
_rocefs_options() {  # HELP [NAME=…]: of the mount's options, those names alone
  local word=${COMP_WORDS[COMP_CWORD]} list= item value values names=${2:-} taken at
  for ((at = COMP_CWORD; at > 1; --at)); do
    list=${COMP_WORDS[at]}$list
    [ "${COMP_WORDS[at - 1]}" != -o ] || break
    [[ ${COMP_WORDS[at - 1]} == [=:] || ${COMP_WORDS[at]} == [=:]* ]] || return
  done
  [ "$at" -gt 1 ] || return
  item=${list##*,}
  if [[ $item == *=* ]]; then
    value=${word##*,} && value=${value##*=} taken=${word%"$value"}
    [ "$taken" != = ] || taken=
    values=$(sed -n "/^options after -o:/,/^$/s/^  ${item%%=*}=\([^ ,]*\).*/\1/p" <<<"$1")
    case $values in
      FILE) _rocefs_files "$value" "$taken" ;;
      *\|*) COMPREPLY=($(compgen ${taken:+-P "$taken"} -W "${values//|/ }" -- "$value")) ;;
    esac
    return 0
  fi
  taken=${word%"$item"}
  [ -n "$names" ] || names=$(sed -n '/^options after -o:/,/^$/s/^  //p' <<<"$1" | sed 's/   .*//; s/=[^,]*/=/g; s/[^a-z_,= ].*//' | tr -d ' ' | tr ',' '\n')
  COMPREPLY=($(compgen -P "$taken" -W "$names" -- "$item"))
  [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
  return 0
}
_rocefs() {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local command=${COMP_WORDS[1]} help commands at first=0
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
    help=$("$program" --help 2>/dev/null) command= commands=
  fi
  case $command in
    run) _rocefs_options "$("$program" --help 2>/dev/null)" && return ;;
    sim) _rocefs_options "$help" seed= && return ;;
    '') _rocefs_options "$help" && return ;;
  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$(sed -n 's/^  \(-.*\)/\1/p' <<<"$help" | sed 's/   .*//' | grep -oE -- '--?[A-Za-z][a-z-]*')" -- "$word")) ;;
    *)
      case $command:$before in
        host:host | attach:attach | detach:detach)
          COMPREPLY=($(compgen -W "$(ls "${ROCEFS_MOUNT:-/}/kernel/debug/rocefs/hosts" 2>/dev/null)" -- "$word")) ;;
        top:--screen) COMPREPLY=($(compgen -W "devices links queues flows" -- "$word")) ;;
        run:--keep) COMPREPLY=($(compgen -W "failure always never" -- "$word")) ;;
        run:* | sim:* | view:--record | view:--replay | attach:--netns) _rocefs_files "$word" ;;
        *) COMPREPLY=($(compgen -W "$commands" -- "$word") $(compgen -d -- "$word")) ;;
      esac
      compopt -o filenames 2>/dev/null
      ;;
  esac
}
complete -F _rocefs rocefs
