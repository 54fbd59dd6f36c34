#include "app/cli/parse_errors.h"

#include "app/cli/output.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <sstream>

namespace mr::app {
namespace {

constexpr int kWrongUse = 2;
constexpr std::size_t kMostDifferences = 2;

// Letters to insert, remove, replace or exchange with their neighbour.
std::size_t differences(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> before(b.size() + 1);
    std::vector<std::size_t> last(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(last.begin(), last.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        before = std::exchange(last, row);
    }
    return last[b.size()];
}

std::vector<std::string> commandNames(const CLI::App& app)
{
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(command->get_name());
    return names;
}

std::vector<std::string> optionNames(const CLI::App& command)
{
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options())
        for (const std::string& name : option->get_lnames())
            names.push_back("--" + name);
    return names;
}

// The innermost subcommand that was given; `left` gets the words that no parser on the way knew.
const CLI::App& givenCommand(const CLI::App& app, std::vector<std::string>& left)
{
    const std::vector<std::string> unknown = app.remaining();
    left.insert(left.end(), unknown.begin(), unknown.end());
    const auto given = app.get_subcommands();
    return given.empty() ? app : givenCommand(*given.front(), left);
}

std::string suggestion(const std::string& meant)
{
    return meant.empty() ? "" : "; did you mean " + meant + "?";
}

// Is it an option of train?
bool isOfTrain(const CLI::App& app, const std::string& name)
{
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        const std::vector<std::string> known = optionNames(*command);
        if (command->get_name() == "train" &&
            std::find(known.begin(), known.end(), name) != known.end())
            return true;
    }
    return false;
}

// Names the command or option that the parser does not know. Empty: the error is another.
std::string namedError(CLI::App& app, const CLI::ParseError& error, std::string_view first)
{
    const std::vector<std::string> commands = commandNames(app);
    const bool isWord = !first.empty() && first.front() != '-';
    if (isWord && std::find(commands.begin(), commands.end(), first) == commands.end())
        return "there is no command " + std::string(first) + suggestion(meantWord(first, commands));
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError))
        return {};
    std::vector<std::string> left;
    const CLI::App& command = givenCommand(app, left);
    for (const std::string& word : left)
        if (word.starts_with("--")) {
            const std::string name = word.substr(0, word.find('='));
            if (command.get_name() == "resume" && isOfTrain(app, name))
                return "resume has no option " + name +
                       ": a run goes on with the settings it began with; to change them, begin "
                       "another "
                       "from its model: millrace train --model RUN_DIR/model " +
                       name + " ...";
            return command.get_name() + " has no option " + name +
                   suggestion(meantWord(name, optionNames(command)));
        }
    return {};
}

} // namespace

std::string meantWord(std::string_view typed, const std::vector<std::string>& known)
{
    std::string best;
    std::size_t fewest = kMostDifferences + 1;
    for (const std::string& word : known) {
        const std::size_t count = word.starts_with(typed) ? 0 : differences(typed, word);
        if (count < fewest && count < word.size() / 2) {
            fewest = count;
            best = word;
        }
    }
    return best;
}

int reportParseError(CLI::App& app, const CLI::ParseError& error, std::string_view first)
{
    std::ostringstream out;
    std::ostringstream err;
    const int code = app.exit(error, out, err);
    if (code == 0) {
        printPiece(out.str());
        return 0;
    }
    const std::string named = namedError(app, error, first);
    if (!named.empty()) {
        say(named);
        return kWrongUse;
    }
    std::istringstream lines(err.str());
    for (std::string line; std::getline(lines, line);)
        if (!line.empty())
            say(line);
    return kWrongUse;
}

} // namespace mr::app
