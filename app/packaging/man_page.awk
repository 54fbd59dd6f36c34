# Makes a manual page of what a program prints for --help: the form of CLI11, or that of Qt.
#   PROGRAM --help | awk -v name=millrace-train -v source="Millrace 0.1.0" -v also="millrace(1)" \
#       -f man_page.awk
# `about` is the sentence for NAME where the help has none. A further help behind the line
# "%%% millrace runs show" becomes a section of its own.

# Text for roff: its own signs are escaped, so a line of help is never a command.
function plain(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    sub(/^[.']/, "\\\\\\&&", text)
    return text
}

function print_title() {
    print ".\\\" Made from --help by app/packaging/man_page.awk."
    printf ".TH %s 1 \"\" \"%s\" \"User Commands\"\n", toupper(plain(name)), source
    print ".nh" # names of commands stay in one piece
}

function print_name() {
    printf ".SH NAME\n%s \\- %s\n", plain(name), plain(about)
    named = 1
}

function heading(text) {
    printf "%s %s\n", (nested ? ".SS" : ".SH"), toupper(plain(text))
}

# The column at which the description begins; 0: it begins on the next line.
function column_of(line,    key) {
    if (match(line, /^  [^ ]+( [^ ]+)*   */) && RLENGTH < length(line))
        return RLENGTH + 1
    if (length(line) > 30 && substr(line, 30, 1) == " ")
        return 31
    return 0
}

function print_entry(line,    column, key) {
    column = column_of(line)
    key = column ? substr(line, 3, column - 3) : substr(line, 3)
    sub(/ +$/, "", key)
    sub(/,-/, ", -", key)
    printf ".TP\n\\fB%s\\fR\n", plain(key)
    started = 0
    if (column)
        print_text(substr(line, column))
}

# Policies list their options under an option, a line each.
function print_text(text) {
    if (started && text ~ /^[a-z-]+ \([^)]*\): /)
        print ".br"
    print plain(text)
    started = 1
}

BEGIN { print_title() }

/^%%% / {
    nested = 0
    heading(substr($0, 5))
    nested = 1
    next
}
/^Usage: / {
    if (!named)
        print_name()
    usage = substr($0, 8)
    sub(/^[^ ]*\//, "", usage)
    heading(nested ? "usage" : "synopsis")
    print plain(usage)
    next
}
/^[A-Z][A-Za-z ]*:$/ {
    heading(substr($0, 1, length($0) - 1))
    next
}
/^  [^ ]/ { print_entry($0); next }
/^   / { sub(/^ +/, ""); print_text($0); next }
/^$/ { next }
{
    if (!named) {
        if (about == "")
            about = $0
        print_name()
    } else
        print plain($0)
}

END {
    if (!named) {
        print "man_page.awk: the help of " name " has no usage line" > "/dev/stderr"
        exit 1
    }
    if (also != "") {
        print ".SH SEE ALSO"
        print plain(also)
    }
}
