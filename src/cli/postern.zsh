#compdef postern
# The completion of postern for zsh. Install it as the file _postern in a folder of fpath, or load it behind compinit:
# source <(postern completion zsh)
_postern() {
  local -a lines entries
  lines=("${(@f)$($words[1] completion words -- $((CURRENT - 1)) "${(@)words}" 2>/dev/null)}")
  compset -P '--*='
  case $lines[1] in
    files) _files ;;
    folders) _files -/ ;;
    at-files) if compset -P @; then _files; else compadd -S '' @; fi ;;
    *) entries=("${(@)lines[2,-1]//:/\\:}"); entries=("${(@)entries/$'\t'/:}"); _describe postern entries ;;
  esac
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _postern "$@"; else compdef _postern postern; fi
