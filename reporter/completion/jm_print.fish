# SPDX-License-Identifier: GPL-2.0-or-later
#
# fish completion for jmassif's commands, one of which this file is named after. The options, their values and what they are for are
# those that the command's --help lists, so that there is no second list to keep.

# From "  -o FILE, --output FILE  what it is for", of which the last may stand in the next line: option, value and purpose, with
# tabs between them. Of jmassif's own --help, which is Valgrind's, from "    --option=<value>  what it is for".
function __jmassif_read_help
    env COLUMNS=1000 $argv[1] --help 2>/dev/null | awk '
        function tell(   i, n, parts, name, value) {
            if (names == "") return
            n = split(names, parts, ", ")
            value = parts[n]
            if (!sub(/^[^ =]+[ =]/, "", value)) value = ""
            for (i = 1; i <= n; i++) {
                name = parts[i]
                sub(/[ =].*/, "", name)
                print name "\t" value "\t" about
            }
            names = ""
        }
        /^ +-[a-zA-Z-]/ {
            tell()
            sub(/^ +/, "")
            about = ""
            if (match($0, /  +/)) { about = substr($0, RSTART + RLENGTH); $0 = substr($0, 1, RSTART - 1) }
            names = $0
            next
        }
        names != "" && about == "" && /^   / { about = $0; sub(/^ +/, "", about); next }
        { tell() }
        END { tell() }
    '
end

function __jmassif_complete --argument-names command
    for row in (__jmassif_read_help $command)
        set -l fields (string split \t -- $row)
        set -l name (string replace -r '^-+' '' -- $fields[1])
        test -n "$name"; or continue
        set -l words -c $command -d "$fields[3]"
        if string match -q -- '--*' $fields[1]
            set -a words -l $name
        else
            set -a words -s $name
        end
        if string match -q -- '{*' $fields[2]
            set -a words -x -a (string join ' ' (string split , (string trim -c '{}' -- $fields[2])))
        else if string match -q -r 'FILE|LOG|TRACE|DIRECTORY' -- $fields[2]
            set -a words -r -F
        else if test -n "$fields[2]"
            set -a words -x
        end
        complete $words
    end
    if test $command = jm_fleet
        # It begins with an action.
        set -l actions (env COLUMNS=1000 jm_fleet --help 2>/dev/null | string replace -r -f '^  \{([a-z,]+)\}.*' '$1')[1]
        complete -c jm_fleet -n __fish_is_first_token -x -a (string join ' ' (string split , -- $actions))
    end
    if test $command = jmassif
        complete -c jmassif -n __fish_use_subcommand -a 'doctor vgdb'
        complete -c jmassif -n 'not string match -q -- "-*" (commandline -ct)' -x -a '(__fish_complete_subcommand)'
    end
end

__jmassif_complete (string replace -r '^.*/|\.fish$' '' -a -- (status filename))
