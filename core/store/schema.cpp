#include "core/store/schema.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace mr {
namespace {

namespace fs = std::filesystem;

// Before journal_mode and the first table: neither can be changed later.
constexpr const char* kFilePragmas = R"sql(
PRAGMA page_size = 4096;
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
)sql";

// Set on every connection, as the file keeps none of these.
constexpr const char* kConnectionPragmas = R"sql(
PRAGMA foreign_keys = ON;
PRAGMA synchronous = NORMAL;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -16000;
PRAGMA secure_delete = FAST;
PRAGMA wal_autocheckpoint = 1000;
PRAGMA journal_size_limit = 67108864;
)sql";

constexpr const char* kTablesOfThings = R"sql(
PRAGMA application_id = 0x4D4C5243;
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) STRICT, WITHOUT ROWID;
CREATE TABLE model(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, path TEXT NOT NULL UNIQUE, arch TEXT, dtype TEXT,
  n_params INTEGER, bytes INTEGER, tokenizer_hash TEXT, files_hash TEXT, license TEXT,
  added_at INTEGER NOT NULL, missing INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE dataset(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, path TEXT NOT NULL, format TEXT NOT NULL,
  bytes INTEGER, mtime INTEGER, content_hash TEXT, n_rows INTEGER, mapping_json TEXT,
  added_at INTEGER NOT NULL, deleted_at INTEGER) STRICT;
CREATE TABLE dataset_stat(
  dataset_id INTEGER NOT NULL REFERENCES dataset(id) ON DELETE CASCADE,
  tokenizer_hash TEXT NOT NULL, template_hash TEXT NOT NULL, max_len INTEGER NOT NULL,
  n_samples INTEGER, n_tokens INTEGER, n_loss_tokens INTEGER, n_truncated INTEGER,
  n_empty_mask INTEGER, p50 INTEGER, p90 INTEGER, p99 INTEGER, longest INTEGER, hist BLOB,
  PRIMARY KEY(dataset_id, tokenizer_hash, template_hash, max_len)) STRICT, WITHOUT ROWID;
CREATE TABLE run(
  id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
  parent_id INTEGER REFERENCES run(id) ON DELETE SET NULL, from_checkpoint_id INTEGER,
  model_id INTEGER REFERENCES model(id), dataset_id INTEGER REFERENCES dataset(id),
  status TEXT NOT NULL CHECK(status IN('draft','queued','starting','running','pausing','paused',
    'saving','done','stopped','failed','lost')),
  config_json TEXT NOT NULL CHECK(json_valid(config_json)), config_hash TEXT NOT NULL,
  plan_json TEXT, host_json TEXT, engine_version TEXT,
  created_at INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER,
  exit_code INTEGER, exit_reason TEXT, dir TEXT,
  last_step INTEGER, total_steps INTEGER, tokens INTEGER,
  last_loss REAL, best_eval REAL, best_eval_step INTEGER,
  simulated_link INTEGER NOT NULL DEFAULT 0, compute_us INTEGER, stall_us INTEGER,
  active_us INTEGER, energy_j REAL, device_peak_bytes INTEGER, host_peak_bytes INTEGER,
  spark BLOB, notes TEXT NOT NULL DEFAULT '', color TEXT, pinned INTEGER NOT NULL DEFAULT 0,
  archived INTEGER NOT NULL DEFAULT 0, deleted_at INTEGER) STRICT;
CREATE INDEX run_recent ON run(archived, deleted_at, created_at DESC);
CREATE TABLE segment(
  run_id INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE, seg INTEGER NOT NULL,
  started_at INTEGER NOT NULL, ended_at INTEGER, first_step INTEGER, last_step INTEGER,
  pid INTEGER, boot_id TEXT, end_reason TEXT, PRIMARY KEY(run_id, seg)) STRICT, WITHOUT ROWID;
CREATE TABLE tag(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE COLLATE NOCASE, color TEXT) STRICT;
CREATE TABLE run_tag(
  run_id INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  tag_id INTEGER NOT NULL REFERENCES tag(id) ON DELETE CASCADE,
  PRIMARY KEY(run_id, tag_id)) STRICT, WITHOUT ROWID;
CREATE TABLE run_param(
  run_id INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE, key TEXT NOT NULL, value TEXT,
  num REAL, PRIMARY KEY(run_id, key)) STRICT, WITHOUT ROWID;
CREATE INDEX run_param_kv ON run_param(key, value);
)sql";

constexpr const char* kTablesOfSeries = R"sql(
CREATE TABLE step(
  id INTEGER PRIMARY KEY, t_ms INTEGER NOT NULL, dt_us INTEGER NOT NULL, tokens INTEGER,
  loss_tokens INTEGER, staleness INTEGER, loss REAL, lr REAL, grad_norm REAL,
  compute_us INTEGER, stall_h2d_us INTEGER, stall_d2h_us INTEGER, stall_disk_us INTEGER,
  stall_host_update_us INTEGER, stall_data_us INTEGER, stall_other_us INTEGER,
  h2d_bytes INTEGER, d2h_bytes INTEGER, disk_read_bytes INTEGER, disk_write_bytes INTEGER,
  device_peak_bytes INTEGER, host_peak_bytes INTEGER) STRICT;
CREATE TABLE metric(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, unit TEXT, better INTEGER, kind TEXT) STRICT;
CREATE TABLE scalar(
  run_id INTEGER NOT NULL, metric_id INTEGER NOT NULL, step INTEGER NOT NULL, t_ms INTEGER,
  value REAL, PRIMARY KEY(run_id, metric_id, step)) STRICT, WITHOUT ROWID;
CREATE TABLE chunk(
  run_id INTEGER NOT NULL, metric_id INTEGER NOT NULL, lod INTEGER NOT NULL, t0_ms INTEGER NOT NULL,
  period_us INTEGER NOT NULL, n INTEGER NOT NULL, vmin REAL, vmax REAL, vsum REAL,
  data BLOB NOT NULL, PRIMARY KEY(run_id, metric_id, lod, t0_ms)) STRICT, WITHOUT ROWID;
CREATE TABLE event(
  id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  step INTEGER, t_ms INTEGER NOT NULL, level INTEGER NOT NULL, code TEXT NOT NULL,
  text TEXT NOT NULL, data_json TEXT, seen INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX event_run ON event(run_id, t_ms);
CREATE TABLE checkpoint(
  id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES run(id) ON DELETE RESTRICT,
  step INTEGER NOT NULL, kind TEXT NOT NULL, path TEXT NOT NULL UNIQUE, bytes INTEGER, hash TEXT,
  has_optimizer INTEGER NOT NULL,
  state TEXT NOT NULL CHECK(state IN('writing','complete','verified','broken','deleted')),
  eval_loss REAL, created_at INTEGER NOT NULL, write_ms INTEGER,
  pinned INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX checkpoint_run ON checkpoint(run_id, step);
CREATE TABLE sample(
  run_id INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE, prompt_id INTEGER NOT NULL,
  step INTEGER NOT NULL, text TEXT NOT NULL, seed INTEGER, params_json TEXT,
  PRIMARY KEY(run_id, prompt_id, step)) STRICT, WITHOUT ROWID;
CREATE TABLE prompt(id INTEGER PRIMARY KEY, set_name TEXT NOT NULL, text TEXT NOT NULL) STRICT;
CREATE TABLE export(
  id INTEGER PRIMARY KEY, run_id INTEGER REFERENCES run(id) ON DELETE SET NULL,
  checkpoint_id INTEGER, format TEXT NOT NULL, quant TEXT, path TEXT NOT NULL, bytes INTEGER,
  hash TEXT, status TEXT NOT NULL, created_at INTEGER NOT NULL) STRICT;
CREATE TABLE trace(
  run_id INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE, step INTEGER NOT NULL,
  path TEXT NOT NULL, bytes INTEGER, why TEXT, PRIMARY KEY(run_id, step)) STRICT, WITHOUT ROWID;
CREATE TABLE queue(
  id INTEGER PRIMARY KEY, pos REAL NOT NULL,
  run_id INTEGER NOT NULL UNIQUE REFERENCES run(id) ON DELETE CASCADE, not_before INTEGER,
  after_failure TEXT NOT NULL DEFAULT 'continue') STRICT;
CREATE VIRTUAL TABLE run_fts USING fts5(
  name, notes, tags, model, dataset, tokenize='unicode61 remove_diacritics 2');
)sql";

// State of a file, read before anything else.
struct FileState {
    std::int64_t version = 0;
    std::int64_t application = 0;
    std::int64_t tables = 0;
};

Result<FileState> inspectFile(Database& database)
{
    FileState state;
    Result<std::int64_t> version = database.integer("PRAGMA user_version");
    MR_TRY(version.status());
    Result<std::int64_t> application = database.integer("PRAGMA application_id");
    MR_TRY(application.status());
    Result<std::int64_t> tables = database.integer("SELECT count(*) FROM sqlite_schema");
    MR_TRY(tables.status());
    MR_ASSIGN(std::int64_t programs,
        database.integer("SELECT count(*) FROM sqlite_schema WHERE type IN ('view','trigger')"));
    if (programs > 0) // one that never ends would run in place of a table
        return Status::error(ErrorKind::DataCorrupt,
            fmt::format("history {} holds views or triggers, which Millrace never makes; move it "
                        "away or restore a backup, run folders keep their own records",
                database.path()));
    state.version = version.value();
    state.application = application.value();
    state.tables = tables.value();
    if (state.tables > 0 && state.application != kApplicationId)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("{} is a database of another program; name another file for the history",
                database.path()));
    if (state.version > kSchemaVersion)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("history {} was written by a newer Millrace (format {}, this program knows "
                        "up to {}); update Millrace or name another file",
                database.path(), state.version, kSchemaVersion));
    return state;
}

Status createTables(Database& database)
{
    MR_TRY(database.script(kTablesOfThings));
    return database.script(kTablesOfSeries);
}

// asked_json: the settings before anything was chosen for the user; a run like it asks for them
// again. interval: work of a run between its steps.
Status addAskedAndIntervals(Database& database)
{
    return database.script(R"sql(
ALTER TABLE run ADD COLUMN asked_json TEXT;
CREATE TABLE interval(
  run_id INTEGER NOT NULL, end_us INTEGER NOT NULL, kind INTEGER NOT NULL,
  begin_us INTEGER NOT NULL, step INTEGER NOT NULL, compute_us INTEGER,
  stall_h2d_us INTEGER, stall_d2h_us INTEGER, stall_host_update_us INTEGER,
  stall_disk_us INTEGER, stall_data_us INTEGER, stall_other_us INTEGER,
  h2d_bytes INTEGER, d2h_bytes INTEGER, disk_read_bytes INTEGER, disk_write_bytes INTEGER,
  PRIMARY KEY(run_id, end_us, kind)) STRICT, WITHOUT ROWID;
)sql");
}

// verdict_json: what the check of an export said. No program before filled the table.
Status addVerdicts(Database& database)
{
    return database.script("ALTER TABLE export ADD COLUMN verdict_json TEXT;"
                           "CREATE INDEX export_run ON export(run_id, created_at);");
}

// A new file is format 0 and goes the same way as an old one.
constexpr std::array<Migration, 3> kMigrations = {
    Migration{1, createTables}, Migration{2, addAskedAndIntervals}, Migration{3, addVerdicts}};
static_assert(kMigrations.back().to == kSchemaVersion);

Status backUp(Database& database, std::int64_t version)
{
    const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    const fs::path folder = fs::path(database.path()).parent_path();
    const std::string base =
        fmt::format("history-v{}-{:%Y%m%dT%H%M%SZ}", version, fmt::gmtime(now));
    fs::path copy = folder / (base + ".db");
    std::error_code ignored;
    for (int i = 2; fs::exists(copy, ignored); ++i) // VACUUM INTO refuses a file that exists
        copy = folder / fmt::format("{}-{}.db", base, i);
    MR_TRY(database.execute("VACUUM INTO ?", copy.string()));
    fs::permissions(copy, fs::status(database.path(), ignored).permissions(), ignored);
    return {};
}

Status applyMigration(Database& database, const Migration& migration)
{
    MR_ASSIGN(Transaction transaction, Transaction::begin(database, Durability::Full));
    // Another process may have been faster.
    MR_ASSIGN(std::int64_t version, database.integer("PRAGMA user_version"));
    if (version >= migration.to)
        return {};
    MR_TRY(migration.apply(database));
    std::int64_t broken = 0;
    MR_TRY(database.query("PRAGMA foreign_key_check", [&](const Row&) { ++broken; }));
    if (broken > 0)
        return Status::error(ErrorKind::Internal,
            fmt::format("history {}: migration to format {} left {} broken references; nothing was "
                        "changed",
                database.path(), migration.to, broken));
    MR_TRY(database.script(fmt::format("PRAGMA user_version={}", migration.to).c_str()));
    return transaction.commit();
}

// A file that was not closed cleanly, or a small one, is read through once; a large clean one is
// trusted (0.3 s for 52 MB).
Status checkHealth(Database& database, bool wasClean)
{
    constexpr std::uintmax_t kAlwaysCheckBytes = 16U << 20U;
    std::error_code failed;
    const std::uintmax_t bytes = fs::file_size(database.path(), failed);
    if (failed || (wasClean && bytes > kAlwaysCheckBytes))
        return {};
    std::string verdict;
    MR_TRY(database.query("PRAGMA quick_check(1)", [&](const Row& row) { verdict = row.text(0); }));
    if (verdict != "ok")
        return Status::error(ErrorKind::DataCorrupt,
            fmt::format("history {} is damaged ({}); move it away or restore a backup, run folders "
                        "keep their own records",
                database.path(), verdict));
    return {};
}

Status prepareFolder(const std::string& path)
{
    const fs::path folder = fs::absolute(path).parent_path();
    std::error_code failed;
    fs::create_directories(folder, failed);
    if (failed)
        return Status::error(
            ErrorKind::Io, fmt::format("cannot make the folder {} for the history: {}",
                               folder.string(), failed.message()));
    switch (fileSystemKind(path)) {
    case FileSystemKind::Network:
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("the history {} lies on a network file system, where it could be damaged; "
                        "name a file on a local disk",
                path));
    case FileSystemKind::Doubtful:
        std::fputs(fmt::format("warning: the history {} lies on a file system that may not keep "
                               "SQLite files safe; a local disk is better\n",
                       path)
                       .c_str(),
            stderr);
        break;
    case FileSystemKind::Local:
        break;
    }
    return {};
}

// A new one is its owner's alone: it holds notes, prompts and answers. SQLite gives the files
// beside it the same mode. Whatever fails here, opening it says so.
void makePrivate(const std::string& path)
{
    const int made =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (made >= 0)
        ::close(made);
}

} // namespace

FileSystemKind fileSystemKind(const std::string& path)
{
    fs::path at = fs::absolute(path);
    std::error_code ignored;
    while (!fs::exists(at, ignored) && at.has_relative_path())
        at = at.parent_path();
    struct statfs info {
    };
    if (::statfs(at.c_str(), &info) != 0)
        return FileSystemKind::Local; // opening reports the fault
    switch (static_cast<std::uint64_t>(info.f_type) & 0xffffffffU) {
    case 0x6969:     // NFS
    case 0x517B:     // SMB
    case 0xFE534D42: // SMB2
    case 0xFF534D42: // CIFS
    case 0x5346414F: // AFS
        return FileSystemKind::Network;
    case 0x65735546: // FUSE: from local NTFS to a mounted bucket
    case 0x01021997: // 9p: shared with a virtual machine's host
        return FileSystemKind::Doubtful;
    default:
        return FileSystemKind::Local;
    }
}

Status migrate(Database& database, std::span<const Migration> migrations)
{
    MR_ASSIGN(std::int64_t version, database.integer("PRAGMA user_version"));
    if (migrations.empty() || version >= migrations.back().to)
        return {};
    MR_ASSIGN(std::int64_t tables, database.integer("SELECT count(*) FROM sqlite_schema"));
    if (tables > 0)
        MR_TRY(backUp(database, version));
    for (const Migration& migration : migrations) {
        if (migration.to > version)
            MR_TRY(applyMigration(database, migration));
    }
    return {};
}

Result<std::unique_ptr<Database>> openForWriting(const std::string& path)
{
    MR_TRY(prepareFolder(path));
    std::error_code missing;
    const std::uintmax_t walBytes = fs::file_size(path + "-wal", missing);
    const bool wasClean = static_cast<bool>(missing) || walBytes == 0;
    makePrivate(path);
    Result<std::unique_ptr<Database>> opened = Database::open(path, OpenMode::ReadWriteCreate);
    MR_TRY(opened.status());
    Database& database = *opened.value();
    MR_ASSIGN(FileState state, inspectFile(database));
    if (state.tables == 0)
        MR_TRY(database.script(kFilePragmas));
    else
        MR_TRY(checkHealth(database, wasClean));
    MR_TRY(database.script(kConnectionPragmas));
    MR_TRY(migrate(database, kMigrations));
    return opened;
}

Result<std::unique_ptr<Database>> openForReading(const std::string& path)
{
    std::error_code ignored;
    if (!fs::exists(path, ignored))
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("there is no history at {}; the first run makes it", path));
    Result<std::unique_ptr<Database>> opened = Database::open(path, OpenMode::ReadOnly);
    MR_TRY(opened.status());
    MR_ASSIGN(FileState state, inspectFile(*opened.value()));
    if (state.tables == 0)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("the history {} is still empty; the first run fills it", path));
    MR_TRY(opened.value()->script("PRAGMA query_only=ON; PRAGMA temp_store=MEMORY; "
                                  "PRAGMA cache_size=-16000;"));
    return opened;
}

} // namespace mr
