#include "core/store/run_rows.h"

#include "core/api/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

namespace mr {
namespace {

// "/models/tiny/" and "/models/tiny" are both "tiny".
std::string lastPart(const std::string& path)
{
    std::filesystem::path p(path);
    if (!p.has_filename())
        p = p.parent_path();
    const std::string name = p.filename().string();
    return name.empty() ? path : name;
}

// FNV-1a, 64 bits (Fowler, Noll, Vo): tells equal configurations apart from different ones; it
// protects nothing.
std::string textHash(std::string_view text)
{
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char c : text) {
        hash ^= static_cast<unsigned char>(c);
        hash *= 0x100000001b3U;
    }
    return fmt::format("{:016x}", hash);
}

Result<std::optional<std::int64_t>> modelId(
    Database& database, const NewRun& run, std::int64_t nowMs)
{
    if (run.modelPath.empty())
        return std::optional<std::int64_t>();
    MR_TRY(database.execute(
        "INSERT INTO model(name,path,arch,dtype,n_params,added_at) VALUES(?,?,?,?,?,?)"
        " ON CONFLICT(path) DO UPDATE SET arch=excluded.arch, dtype=excluded.dtype,"
        " n_params=excluded.n_params, missing=0",
        lastPart(run.modelPath), run.modelPath, run.modelArchitecture, run.modelDtype,
        run.parameters, nowMs));
    MR_ASSIGN(
        std::int64_t id, database.integer("SELECT id FROM model WHERE path=?", run.modelPath));
    return std::optional(id);
}

Result<std::optional<std::int64_t>> datasetId(
    Database& database, const NewRun& run, std::int64_t nowMs)
{
    if (run.datasetPath.empty())
        return std::optional<std::int64_t>();
    MR_ASSIGN(std::int64_t id,
        database.integer("SELECT id FROM dataset WHERE path=? AND format=? ORDER BY id DESC",
            run.datasetPath, run.datasetFormat));
    if (id != 0)
        return std::optional(id);
    MR_TRY(database.execute("INSERT INTO dataset(name,path,format,added_at) VALUES(?,?,?,?)",
        lastPart(run.datasetPath), run.datasetPath, run.datasetFormat, nowMs));
    return std::optional(database.lastInsertId());
}

} // namespace

Status insertParameters(Database& database, std::int64_t runId, const std::string& configJson)
{
    const nlohmann::json config = nestsTooDeeply(configJson)
                                      ? nlohmann::json()
                                      : nlohmann::json::parse(configJson, nullptr, false);
    if (!config.is_object())
        return Status::error(
            ErrorKind::InvalidArgument, "the configuration of a run must be a JSON object");
    const nlohmann::json leaves = config.flatten();
    for (const auto& [pointer, leaf] : leaves.items()) {
        if (pointer.empty()) // an object without fields
            continue;
        std::string key = pointer.substr(1);
        std::replace(key.begin(), key.end(), '/', '.');
        const std::string text =
            leaf.is_string() ? leaf.get<std::string>()
                             : leaf.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        constexpr std::string_view kInsert =
            "INSERT OR REPLACE INTO run_param(run_id,key,value,num) VALUES(?,?,?,?)";
        if (leaf.is_number())
            MR_TRY(database.execute(kInsert, runId, key, text, leaf.get<double>()));
        else
            MR_TRY(database.execute(kInsert, runId, key, text, nullptr));
    }
    return {};
}

Status replaceConfig(Database& database, std::int64_t runId, const std::string& configJson)
{
    MR_TRY(database.execute("DELETE FROM run_param WHERE run_id=?", runId));
    MR_TRY(insertParameters(database, runId, configJson));
    return database.execute("UPDATE run SET config_json=?, config_hash=? WHERE id=?", configJson,
        textHash(configJson), runId);
}

Status refreshSearch(Database& database, std::int64_t runId)
{
    MR_TRY(database.execute("DELETE FROM run_fts WHERE rowid=?", runId));
    return database.execute(
        "INSERT INTO run_fts(rowid,name,notes,tags,model,dataset) SELECT run.id,run.name,run.notes,"
        "(SELECT coalesce(group_concat(tag.name,' '),'') FROM run_tag JOIN tag ON tag.id=tag_id"
        " WHERE run_id=run.id),coalesce(model.name,''),coalesce(dataset.name,'')"
        " FROM run LEFT JOIN model ON model.id=model_id LEFT JOIN dataset ON dataset.id=dataset_id"
        " WHERE run.id=?",
        runId);
}

Result<std::int64_t> insertRun(Database& database, const NewRun& run, std::int64_t nowMs)
{
    MR_ASSIGN(std::int64_t known, database.integer("SELECT id FROM run WHERE uuid=?", run.uuid));
    if (known != 0)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("history {} already has the run {}", database.path(), run.uuid));
    MR_ASSIGN(std::optional<std::int64_t> model, modelId(database, run, nowMs));
    MR_ASSIGN(std::optional<std::int64_t> dataset, datasetId(database, run, nowMs));
    // 0 stands for "none": SQL turns it into NULL.
    MR_TRY(database.execute(
        "INSERT INTO run(uuid,name,model_id,dataset_id,status,config_json,config_hash,plan_json,"
        "host_json,engine_version,created_at,dir,total_steps,simulated_link,asked_json)"
        " VALUES(?,?,nullif(?,0),nullif(?,0),'starting',?,?,?,?,?,?,?,?,?,nullif(?,''))",
        run.uuid, run.name, model.value_or(0), dataset.value_or(0), run.configJson,
        textHash(run.configJson), run.planJson, run.hostJson, run.engineVersion, nowMs, run.dir,
        run.totalSteps, run.simulatedLink, run.askedJson));
    return database.lastInsertId();
}

Status runMustExist(Database& database, std::int64_t runId)
{
    MR_ASSIGN(std::int64_t count, database.integer("SELECT count(*) FROM run WHERE id=?", runId));
    if (count == 0)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("history {} has no run {}", database.path(), runId));
    return {};
}

Result<std::string> nameOfRun(Database& database, std::int64_t runId)
{
    MR_TRY(runMustExist(database, runId));
    std::string name;
    MR_TRY(database.query(
        "SELECT name FROM run WHERE id=?", [&](const Row& row) { name = row.text(0); }, runId));
    return name;
}

Status dropUnusedTags(Database& database)
{
    return database.execute(
        "DELETE FROM tag WHERE NOT EXISTS (SELECT 1 FROM run_tag WHERE tag_id=tag.id)");
}

Result<std::optional<OpenSegment>> openSegment(Database& database, std::int64_t runId)
{
    std::optional<OpenSegment> open;
    MR_TRY(database.query(
        "SELECT seg,pid,boot_id,first_step IS NOT NULL FROM segment WHERE run_id=? AND"
        " end_reason IS NULL ORDER BY seg DESC LIMIT 1",
        [&](const Row& row) {
            open = OpenSegment{row.integer(0), {row.integer(1), row.text(2)}, row.integer(3) != 0};
        },
        runId));
    return open;
}

} // namespace mr
