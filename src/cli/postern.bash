# The completion of postern for bash, from 3.2 on. Load it by: source <(postern completion bash)
_postern() {
  local word=${COMP_WORDS[COMP_CWORD]} kind line
  [[ $word != = ]] || word=
  COMPREPLY=()
  {
    IFS= read -r kind
    while IFS= read -r line; do COMPREPLY+=("${line%%$'\t'*}"); done
  } < <("${COMP_WORDS[0]}" completion words -- "$COMP_CWORD" "${COMP_WORDS[@]}" 2>/dev/null)
  case $kind in
    files) set -- -f "$word" ;;
    folders) set -- -d "$word" ;;
    at-files) set -- -P@ -f "${word#@}" ;;
    *) return ;;
  esac
  [[ $kind == at-files ]] || compopt -o filenames 2>/dev/null
  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "${@:1:$#-1}" -- "${@:$#}")
}
complete -F _postern postern
