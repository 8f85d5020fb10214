# bash completion of mango-ctl: the program says which words may follow.
_mango_ctl() {
  local word=${COMP_WORDS[COMP_CWORD]} offered
  offered=$("${COMP_WORDS[0]}" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  case $offered in
    :files) COMPREPLY=($(compgen -f -- "$word")) ;;
    :directories) COMPREPLY=($(compgen -d -- "$word")) ;;
    *) COMPREPLY=($(compgen -W "$offered" -- "$word")) ;;
  esac
  if [[ $offered == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _mango_ctl mango-ctl
