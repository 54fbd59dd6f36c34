#include "core/store/export_rows.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mr {
namespace {

constexpr std::string_view kPassed = "passed";
constexpr std::string_view kFailed = "failed";

std::string verdictOf(const ExportRow& row)
{
    return nlohmann::json{{"facts", row.facts}, {"faults", row.faults}, {"notes", row.notes}}.dump(
        -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<std::string> sentencesIn(const nlohmann::json& verdict, const char* field)
{
    std::vector<std::string> sentences;
    const auto found = verdict.find(field);
    if (found == verdict.end() || !found->is_array())
        return sentences;
    for (const nlohmann::json& sentence : *found)
        if (sentence.is_string())
            sentences.push_back(sentence.get<std::string>());
    return sentences;
}

ExportRow exportFrom(const Row& row)
{
    ExportRow out;
    out.form = row.text(0);
    out.type = row.text(1);
    out.path = row.text(2);
    out.bytes = row.integer(3);
    out.passed = row.text(4) == kPassed;
    const nlohmann::json verdict = nlohmann::json::parse(row.text(5), nullptr, false);
    if (verdict.is_object()) {
        out.facts = sentencesIn(verdict, "facts");
        out.faults = sentencesIn(verdict, "faults");
        out.notes = sentencesIn(verdict, "notes");
    }
    out.createdMs = row.integer(6);
    return out;
}

} // namespace

Status insertExport(Database& database, std::int64_t runId, const ExportRow& row)
{
    return database.execute(
        "INSERT INTO export(run_id,format,quant,path,bytes,status,verdict_json,created_at)"
        " VALUES(?,?,?,?,?,?,?,?)",
        runId, row.form, row.type, row.path, row.bytes, row.passed ? kPassed : kFailed,
        verdictOf(row), row.createdMs);
}

Result<std::vector<ExportRow>> readExports(Database& database, std::int64_t runId)
{
    std::vector<ExportRow> rows;
    // Asked each time: a writer may bring the file to a newer format while a reader has it open.
    MR_ASSIGN(const std::int64_t hasVerdicts,
        database.integer(
            "SELECT count(*) FROM pragma_table_info('export') WHERE name='verdict_json'"));
    if (hasVerdicts == 0)
        return rows;
    MR_TRY(database.query(
        "SELECT format,quant,path,bytes,status,verdict_json,created_at FROM export"
        " WHERE run_id=? ORDER BY created_at DESC,id DESC",
        [&](const Row& row) { rows.push_back(exportFrom(row)); }, runId));
    return rows;
}

} // namespace mr
