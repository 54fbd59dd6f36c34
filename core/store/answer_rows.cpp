#include "core/store/answer_rows.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

namespace mr {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 4> kStates = {"running", "done", "stopped", "failed"};
constexpr std::array<std::string_view, 3> kForms = {"text", "chat", "chat-if-any"};

template <typename T, std::size_t N>
T valueOf(const std::array<std::string_view, N>& words, const std::string& word, T otherwise)
{
    const auto found = std::find(words.begin(), words.end(), word);
    return found == words.end() ? otherwise : static_cast<T>(found - words.begin());
}

std::string parametersOf(const AnswerRow& row)
{
    const Prompt& p = row.prompt;
    const Answer& a = row.answer;
    return Json{{"id", row.id}, {"system", p.system},
        {"form", kForms[static_cast<std::size_t>(p.form)]}, {"max_tokens", p.maxTokens},
        {"temperature", p.temperature}, {"top_p", p.topP}, {"read", a.read},
        {"by_template", a.byTemplate}, {"prompt_tokens", a.promptTokens}, {"tokens", a.tokens},
        {"ended", a.ended}, {"seconds", a.seconds},
        {"state", kStates[static_cast<std::size_t>(row.state)]}, {"message", row.message}}
        .dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A field of another type than ours counts as missing.
template <typename T>
void take(const Json& json, const char* field, T& value)
{
    const auto found = json.find(field);
    if (found == json.end())
        return;
    if constexpr (std::is_same_v<T, bool>) {
        if (found->is_boolean())
            value = found->get<bool>();
    } else if constexpr (std::is_arithmetic_v<T>) {
        if (found->is_number())
            value = found->get<T>();
    } else if (found->is_string()) {
        value = found->get<T>();
    }
}

AnswerRow answerFrom(const Row& row)
{
    AnswerRow out;
    out.step = row.integer(0);
    out.prompt.text = row.text(1);
    out.answer.text = row.text(2);
    out.prompt.seed = static_cast<std::uint64_t>(row.integer(3));
    Json json = Json::parse(row.text(4), nullptr, false);
    if (!json.is_object())
        json = Json::object();
    std::string form;
    std::string state;
    take(json, "id", out.id);
    take(json, "system", out.prompt.system);
    take(json, "form", form);
    take(json, "max_tokens", out.prompt.maxTokens);
    take(json, "temperature", out.prompt.temperature);
    take(json, "top_p", out.prompt.topP);
    take(json, "read", out.answer.read);
    take(json, "by_template", out.answer.byTemplate);
    take(json, "prompt_tokens", out.answer.promptTokens);
    take(json, "tokens", out.answer.tokens);
    take(json, "ended", out.answer.ended);
    take(json, "seconds", out.answer.seconds);
    take(json, "state", state);
    take(json, "message", out.message);
    out.prompt.form = valueOf(kForms, form, PromptForm::ChatIfAny);
    out.state = valueOf(kStates, state, AnswerState::Done);
    return out;
}

} // namespace

Status writeAnswer(Database& database, std::int64_t runId, const AnswerRow& row)
{
    const std::string& text = row.prompt.text;
    MR_TRY(database.execute("INSERT INTO prompt(set_name,text) SELECT 'try',?1 WHERE NOT EXISTS"
                            " (SELECT 1 FROM prompt WHERE set_name='try' AND text=?1)",
        text));
    const Result<std::int64_t> prompt =
        database.integer("SELECT id FROM prompt WHERE set_name='try' AND text=?", text);
    MR_TRY(prompt.status());
    return database.execute(
        "INSERT OR REPLACE INTO sample(run_id,prompt_id,step,text,seed,params_json)"
        " VALUES(?,?,?,?,?,?)",
        runId, Result(prompt).value(), row.step, row.answer.text,
        static_cast<std::int64_t>(row.prompt.seed), parametersOf(row));
}

Result<std::vector<AnswerRow>> readAnswers(Database& database, std::int64_t runId)
{
    std::vector<AnswerRow> rows;
    MR_TRY(database.query(
        "SELECT step,prompt.text,sample.text,seed,params_json FROM sample"
        " JOIN prompt ON prompt.id=prompt_id WHERE run_id=? ORDER BY step,prompt_id",
        [&](const Row& row) { rows.push_back(answerFrom(row)); }, runId));
    return rows;
}

} // namespace mr
