# Completions of trapline for fish: trapline itself says what may stand at the cursor.

function __trapline_complete
    set -l before (commandline -cp)
    set -l after (string sub -s (math (string length -- "$before") + 1) -- (commandline -p))
    set -l tokens (commandline -cpo)
    for line in ($tokens[1] complete "$before" "$after" 2>/dev/null)
        switch $line
            case ':files' ':dirs'
                __fish_complete_path (commandline -ct)
            case ':command'
                __fish_complete_command
            case ':command *'
                set -l n (math (string replace ':command ' '' -- $line) + 1)
                complete -C (string join ' ' -- (string escape -- $tokens[$n..-1]) (commandline -ct))
            case '*'
                echo $line
        end
    end
end

complete -c trapline -e
complete -c trapline -f -a '(__trapline_complete)'
