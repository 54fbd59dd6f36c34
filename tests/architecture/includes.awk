# Fails if a file of core uses a standard name whose header neither it nor a header of ours that it
# includes names. The rooms of core are compiled with precompiled headers (mr_headers), so the compiler
# does not see it. Run by ctest in the source folder:
#   awk -f includes.awk $(find core -name '*.h' -o -name '*.cpp')
BEGIN {
    add("algorithm", "(ranges::)?(sort|stable_sort|copy|copy_n|fill|fill_n|find|find_if|all_of|any_of|none_of|count|count_if|max_element|min_element|transform|lower_bound|upper_bound|reverse|rotate|remove_if|equal|clamp|min|max)")
    add("array", "array<")
    add("chrono", "chrono::")
    add("cmath", "(sqrt|exp|exp2|log|log2|pow|isfinite|isnan|isinf|lround|llround|ceil|floor|fabs|fma|tanh|cos|sin|ldexp|nextafter)\\(")
    add("filesystem", "filesystem::")
    add("fstream", "(i|o)?fstream")
    add("functional", "function<")
    add("map", "map<")
    add("memory", "(unique_ptr<|shared_ptr<|weak_ptr<|make_unique<|make_shared<)")
    add("mutex", "(mutex|lock_guard|unique_lock|scoped_lock|call_once)")
    add("optional", "(optional<|nullopt|make_optional)")
    add("span", "span<")
    add("string", "(string|to_string|stoi|stod|stoll)")
    add("thread", "(thread|jthread|this_thread::)")
    add("vector", "vector<")
    uses["nlohmann/json.hpp"] = "nlohmann::(ordered_)?json"
}

function add(header, names) { uses[header] = "(^|[^A-Za-z0-9_])std::" names "($|[^A-Za-z0-9_])" }

# path_of(included): where a header of ours lies, or "" for another's.
function path_of(included) {
    if (included ~ /^"/) return substr(included, 2, length(included) - 2)
    if (included ~ /^<millrace\//) return "core/api/" substr(included, 2, length(included) - 2)
    return ""
}

/^#include / {
    own = path_of($2)
    if (own != "") ours[FILENAME] = ours[FILENAME] " " own
    else named[FILENAME, substr($2, 2, length($2) - 2)] = 1
    next
}

{
    sub(/\/\/.*/, "")
    if ($0 !~ /(std|nlohmann)::/) next
    for (header in uses) {
        if (!((FILENAME, header) in first) && $0 ~ uses[header]) first[FILENAME, header] = FNR
    }
}

function clear(    file) {
    for (file in visited) delete visited[file]
}

# is_named(file, header): by the file or by headers of ours below it.
function is_named(file, header,    below, count, i) {
    if ((file, header) in named) return 1
    if (file in visited) return 0
    visited[file] = 1
    count = split(ours[file], below, " ")
    for (i = 1; i <= count; i++) {
        if (is_named(below[i], header)) return 1
    }
    return 0
}

END {
    for (pair in first) {
        checked++
        split(pair, part, SUBSEP)
        clear()
        if (is_named(part[1], part[2])) continue
        # Headers of ours only name the type.
        clear()
        if (part[2] ~ /json/ && part[1] ~ /\.h$/ && is_named(part[1], "nlohmann/json_fwd.hpp")) continue
        printf "%s:%d: uses <%s>, which it does not include\n", part[1], first[pair], part[2]
        missing++
    }
    printf "%d uses checked, %d without their header\n", checked, missing
    exit missing > 0 || checked == 0
}
