# Completions of trapline for bash: trapline itself says what may stand at the cursor.

_trapline() {
    local word what first= line=${COMP_LINE:0:COMP_POINT} own=
    # bash takes ':' and '=' for ends of words: what is before the last one stays.
    local typed=${line##*[[:space:]]}
    # Within quotes it does not: there the word has blanks, too.
    [[ ${COMP_WORDS[COMP_CWORD]} == [\'\"]* ]] && typed=${COMP_WORDS[COMP_CWORD]}
    [[ $typed == [\'\"]* ]] || own=${typed%"${typed##*[:=]}"}
    COMPREPLY=()
    compopt +o default +o bashdefault
    while IFS=$'\t' read -r word what; do
        case $word in
            :files | :dirs) compopt -o default -o bashdefault ;;
            :command)
                compopt -o bashdefault -o default
                COMPREPLY+=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}"))
                ;;
            :command\ *)
                compopt -o bashdefault -o default
                if declare -F _comp_command_offset >/dev/null; then
                    _comp_command_offset "$(_trapline_word "${word#:command }")"
                elif declare -F _command_offset >/dev/null; then
                    _command_offset "$(_trapline_word "${word#:command }")"
                fi
                return
                ;;
            *)
                [[ $word == *[:=,/\(] ]] && compopt -o nospace
                word=${word#"$own"}
                [[ $typed == [\'\"]* ]] || printf -v word %q "$word"
                COMPREPLY+=("$word")
                ;;
        esac
    done < <("${COMP_WORDS[0]}" complete "$line" "${COMP_LINE:COMP_POINT}" 2>/dev/null)
}

# Which of COMP_WORDS begins the Nth word of the line: bash has split those with ':' and '='.
_trapline_word() {
    local n rest=$COMP_LINE count=-1
    for n in "${!COMP_WORDS[@]}"; do
        # Behind a blank, a word begins.
        [[ $n == 0 || $rest == [[:space:]]* ]] && ((++count))
        rest=${rest#"${rest%%[![:space:]]*}"}
        rest=${rest#"${COMP_WORDS[n]}"}
        [[ $count == "$1" ]] && echo "$n" && return
    done
}

complete -F _trapline trapline
