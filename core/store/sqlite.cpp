#include "core/store/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mr {
namespace {

// A damaged file has its own error, apart from a disk or a lock that fails: the way out differs.
Status describe(const std::string& path, int code, std::string_view what, std::string_view reason)
{
    switch (code & 0xff) {
    case SQLITE_NOTADB:
        return Status::error(ErrorKind::DataCorrupt,
            fmt::format(
                "{} is not a Millrace history (it is no SQLite database); name another file "
                "or move this one away",
                path));
    case SQLITE_CORRUPT:
        return Status::error(ErrorKind::DataCorrupt,
            fmt::format("history {} is damaged ({}: {}); move it away or restore a backup, run "
                        "folders keep their own records",
                path, what, reason));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return Status::error(
            ErrorKind::Io, fmt::format("history {} is locked by another program ({})", path, what));
    case SQLITE_CANTOPEN:
        return Status::error(ErrorKind::Io,
            fmt::format("history {} cannot be opened or made: its folder is missing, may not be "
                        "written, or the name is too long; name another file",
                path));
    case SQLITE_FULL:
        return Status::error(
            ErrorKind::Io, fmt::format("history {}: the disk is full ({})", path, what));
    default:
        return Status::error(ErrorKind::Io, fmt::format("history {}: {}: {}", path, what, reason));
    }
}

// First line of the statements, or as much of it as fits into a sentence.
std::string_view firstLine(std::string_view sql)
{
    sql.remove_prefix(std::min(sql.find_first_not_of(" \n"), sql.size()));
    return sql.substr(0, std::min<std::size_t>(sql.find_first_of(";\n"), 60));
}

} // namespace

bool Row::isNull(int column) const
{
    return sqlite3_column_type(m_statement, column) == SQLITE_NULL;
}

std::int64_t Row::integer(int column) const
{
    return sqlite3_column_int64(m_statement, column);
}

double Row::real(int column) const
{
    if (isNull(column))
        return std::numeric_limits<double>::quiet_NaN();
    return sqlite3_column_double(m_statement, column);
}

std::string Row::text(int column) const
{
    const unsigned char* bytes = sqlite3_column_text(m_statement, column);
    if (bytes == nullptr)
        return {};
    const auto count = static_cast<std::size_t>(sqlite3_column_bytes(m_statement, column));
    return {reinterpret_cast<const char*>(bytes), count};
}

Blob Row::blob(int column) const
{
    const void* bytes = sqlite3_column_blob(m_statement, column);
    return {static_cast<const std::byte*>(bytes),
        static_cast<std::size_t>(sqlite3_column_bytes(m_statement, column))};
}

Database::Database(std::string path, sqlite3* handle)
    : m_path(std::move(path))
    , m_handle(handle)
{
}

Database::~Database()
{
    for (auto& [sql, statement] : m_statements)
        sqlite3_finalize(statement);
    sqlite3_close(m_handle);
}

Result<std::unique_ptr<Database>> Database::open(const std::string& path, OpenMode mode)
{
    // NOMUTEX: a connection is confined or locked by its owner.
    const int flags = SQLITE_OPEN_NOMUTEX |
                      (mode == OpenMode::ReadOnly ? SQLITE_OPEN_READONLY
                                                  : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    sqlite3* handle = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
    if (code != SQLITE_OK) {
        Status failed = describe(path, code, "open", sqlite3_errstr(code));
        sqlite3_close(handle);
        return failed;
    }
    sqlite3_busy_timeout(handle, 5000);
    return std::unique_ptr<Database>(new Database(path, handle));
}

Status Database::failure(int code, std::string_view what) const
{
    return describe(m_path, code, what, sqlite3_errmsg(m_handle));
}

Status Database::script(const char* sql)
{
    const int code = sqlite3_exec(m_handle, sql, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK)
        return failure(code, firstLine(sql));
    return {};
}

Result<sqlite3_stmt*> Database::prepared(std::string_view sql)
{
    std::string text(sql);
    if (const auto found = m_statements.find(text); found != m_statements.end())
        return found->second;
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(m_handle, text.c_str(), static_cast<int>(text.size() + 1),
        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK)
        return failure(code, sql.substr(0, 60));
    m_statements.emplace(std::move(text), statement);
    return statement;
}

Result<bool> Database::step(sqlite3_stmt* statement)
{
    const int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        return true;
    Status status;
    if (code != SQLITE_DONE)
        status = failure(code, std::string_view(sqlite3_sql(statement)).substr(0, 60));
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    MR_TRY(std::move(status));
    return false;
}

std::int64_t Database::lastInsertId() const
{
    return sqlite3_last_insert_rowid(m_handle);
}

std::int64_t Database::changes() const
{
    return sqlite3_changes64(m_handle);
}

void Database::bindNull(sqlite3_stmt* s, int position)
{
    sqlite3_bind_null(s, position);
}

void Database::bindInteger(sqlite3_stmt* s, int position, std::int64_t value)
{
    sqlite3_bind_int64(s, position, value);
}

void Database::bindReal(sqlite3_stmt* s, int position, double value)
{
    if (std::isnan(value))
        sqlite3_bind_null(s, position);
    else
        sqlite3_bind_double(s, position, value);
}

void Database::bindText(sqlite3_stmt* s, int position, std::string_view value)
{
    // An empty view may have a null pointer, which would bind NULL.
    const char* bytes = value.data() == nullptr ? "" : value.data();
    sqlite3_bind_text64(s, position, bytes, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

void Database::bindBlob(sqlite3_stmt* s, int position, Blob value)
{
    sqlite3_bind_blob64(s, position, value.data(), value.size(), SQLITE_TRANSIENT);
}

Transaction::Transaction(Database& database, Durability durability)
    : m_database(&database)
    , m_durability(durability)
{
}

Transaction::Transaction(Transaction&& other) noexcept
    : m_database(std::exchange(other.m_database, nullptr))
    , m_durability(other.m_durability)
{
}

Result<Transaction> Transaction::begin(Database& database, Durability durability)
{
    // The level can only be changed outside a transaction.
    if (durability == Durability::Full)
        MR_TRY(database.script("PRAGMA synchronous=FULL"));
    if (Status begun = database.script("BEGIN IMMEDIATE"); !begun.ok()) {
        if (durability == Durability::Full)
            (void)database.script("PRAGMA synchronous=NORMAL");
        return begun;
    }
    return Transaction(database, durability);
}

Transaction::~Transaction()
{
    if (m_database == nullptr)
        return;
    (void)m_database->script("ROLLBACK"); // a failed commit may have rolled back already
    restoreDurability();
}

Status Transaction::commit()
{
    MR_TRY(m_database->script("COMMIT"));
    restoreDurability();
    m_database = nullptr;
    return {};
}

void Transaction::restoreDurability()
{
    if (m_durability == Durability::Full)
        (void)m_database->script("PRAGMA synchronous=NORMAL");
}

} // namespace mr
