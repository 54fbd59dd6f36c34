#include "app/cli/spec_options.h"

#include "app/cli/commands.h"
#include "app/cli/local_name.h"
#include "core/plan/policies.h"

#include <algorithm>
#include <span>
#include <utility>

namespace mr::app {
namespace {

// "auto, a (in plain words) or b (...); b needs --disk-path to train more than an adapter"
std::string policyHelp()
{
    std::string text = "auto";
    std::string needs;
    const std::vector<PolicyInfo>& table = policyTable();
    for (std::size_t i = 0; i < table.size(); ++i) {
        text.append(i + 1 == table.size() ? " or " : ", ").append(table[i].name);
        text.append(" (").append(table[i].plainName).append(")");
        if (table[i].usesDisk)
            needs.append("; ")
                .append(table[i].name)
                .append(" needs --disk-path to train more than an adapter");
    }
    return text + needs;
}

std::string takers(const OptionInfo& option)
{
    std::string names;
    for (const PolicyInfo& policy : policyTable())
        if (option.isTakenBy(policy.takes))
            names.append(names.empty() ? "" : ", ").append(policy.name);
    return option.takenBy == kAll ? "all policies" : names;
}

std::string optionHelp()
{
    std::string text = "key=value; may be repeated.";
    for (const OptionInfo& option : policyOptionTable())
        text.append("\n")
            .append(option.name)
            .append(" (")
            .append(takers(option))
            .append("): ")
            .append(option.want)
            .append("; ")
            .append(option.help);
    return text;
}

std::string helpOf(const SpecField& field)
{
    if (!field.help.empty())
        return std::string(field.help);
    return field.key == "policy" ? policyHelp() : optionHelp();
}

// As `--help` names the kind of a value.
const char* typeName(const SpecField& field)
{
    if (field.unit != SpecUnit::None)
        return "TEXT"; // with a unit
    if (std::holds_alternative<std::int64_t RunSpec::*>(field.member))
        return "INT";
    if (std::holds_alternative<std::uint64_t RunSpec::*>(field.member))
        return "UINT";
    return std::holds_alternative<double RunSpec::*>(field.member) ? "FLOAT" : "TEXT";
}

bool isFlag(const SpecField& field)
{
    return std::holds_alternative<bool RunSpec::*>(field.member) && field.words.on.empty();
}

bool isList(const SpecField& field)
{
    return std::holds_alternative<std::vector<std::string> RunSpec::*>(field.member) ||
           std::holds_alternative<std::vector<DataSource> RunSpec::*>(field.member) ||
           std::holds_alternative<std::map<std::string, std::string> RunSpec::*>(field.member);
}

} // namespace

void SpecOptions::addTo(CLI::App& command, bool needsData)
{
    for (const SpecField& field : specFields()) {
        if (field.option.empty() || joinsAnother(field))
            continue;
        addField(command, field);
        if (field.key != "data")
            continue;
        if (needsData)
            m_given.back().option->required();
        m_rows.addTo(command);
    }
}

void SpecOptions::addField(CLI::App& command, const SpecField& field)
{
    Given& given = m_given.emplace_back();
    given.fields = {&field};
    const std::string name = "--" + std::string(field.option);
    const std::string help = helpOf(field);
    if (isFlag(field)) {
        given.option = command.add_flag(name, help);
        return;
    }
    given.option = command.add_option(name, given.texts, help)->type_name(typeName(field));
    if (field.key == "model_dir")
        takeLocalName(*given.option);
    if (!isList(field))
        given.option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
}

// An option that was added takes the words of this switch, too.
bool SpecOptions::joinsAnother(const SpecField& field)
{
    const auto same = std::ranges::find_if(
        m_given, [&](const Given& given) { return given.fields.front()->option == field.option; });
    if (same == m_given.end())
        return false;
    same->fields.push_back(&field);
    same->option->expected(-1)->allow_extra_args(false)->multi_option_policy(
        CLI::MultiOptionPolicy::TakeAll);
    return true;
}

namespace {

// The switch that knows the word; the first if none does.
const SpecField& fieldOf(std::span<const SpecField* const> fields, std::string_view text)
{
    const auto known = std::ranges::find_if(fields, [&](const SpecField* field) {
        return text == field->words.off || text == field->words.on;
    });
    return known == fields.end() ? *fields.front() : **known;
}

Status unknownWord(std::span<const SpecField* const> fields, std::string_view text)
{
    std::string words;
    for (const SpecField* field : fields)
        words.append(words.empty() ? "" : ", ")
            .append(field->words.off)
            .append(", ")
            .append(field->words.on);
    return Status::error(ErrorKind::InvalidArgument, "--" + std::string(fields.front()->option) +
                                                         " '" + std::string(text) +
                                                         "': want one of " + words);
}

} // namespace

Result<RunSpec> SpecOptions::spec() const
{
    RunSpec spec;
    for (const Given& given : m_given) {
        const SpecField& first = *given.fields.front();
        if (isFlag(first) && given.option->count() > 0)
            MR_TRY(readOption(first, first.words.on, spec));
        for (const std::string& text : given.texts) {
            const Status read = readOption(fieldOf(given.fields, text), text, spec);
            if (!read.ok() && given.fields.size() > 1)
                return unknownWord(given.fields, text);
            MR_TRY(read);
        }
    }
    MR_TRY(readSources(spec));
    MR_TRY(checkSpec(spec));
    return spec;
}

// The files of both lists are read in the same manner.
Status SpecOptions::readSources(RunSpec& spec) const
{
    for (auto* sources : {&spec.data, &spec.evalData})
        for (DataSource& source : *sources) {
            MR_TRY(requireFiles({source.path}, sources == &spec.data ? "--data" : "--eval-data"));
            MR_ASSIGN(source, m_rows.source(source.path));
        }
    return spec.data.empty() ? Status() : m_rows.exclude(spec.data.front());
}

} // namespace mr::app
