#compdef trapline
# Completions of trapline for zsh: trapline itself says what may stand at the cursor.

_trapline() {
    local line word what
    local -a found shown open open_shown
    local before="${(j: :)words[1,CURRENT-1]} ${QIPREFIX}${PREFIX}" after="${(j: :)words[CURRENT+1,-1]}"
    for line in "${(@f)$("${(Q)words[1]}" complete "$before" "$after" 2>/dev/null)}"; do
        word=${line%%$'\t'*} what=
        [[ $line == *$'\t'* ]] && what=${line#*$'\t'}
        case $word in
            '') ;;
            :files) _files ;;
            :dirs) _files -/ ;;
            :command) _command_names -e ;;
            :command\ *)
                local n=${word#:command }
                shift $n words
                ((CURRENT -= n))
                _normal
                return
                ;;
            *[:=,/\(]) open+=("$word") open_shown+=("$word${what:+  -- $what}") ;;
            *) found+=("$word") shown+=("$word${what:+  -- $what}") ;;
        esac
    done
    (($#found)) && compadd -l -d shown -a found
    (($#open)) && compadd -S '' -l -d open_shown -a open
}

if [[ $funcstack[1] == _trapline ]]; then
    _trapline "$@"
else
    compdef _trapline trapline
fi
