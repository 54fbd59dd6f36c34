// A small owner of one SQLite connection and its prepared statements, so that no other file of the
// store touches the C interface.
//
// Threads  Confined: one connection is used by one thread at a time (the caller locks).
// Ownership A Database closes its connection and finalises its statements; a Transaction that was
//          not committed rolls back.
// Errors   Io, or DataCorrupt for a file that is damaged or no database, always with its path.

#pragma once

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>

struct sqlite3;
struct sqlite3_stmt;

namespace mr {

using Blob = std::span<const std::byte>;

// One row of a query, valid inside the callback that receives it.
class Row
{
public:
    explicit Row(sqlite3_stmt* statement)
        : m_statement(statement)
    {
    }

    bool isNull(int column) const;
    std::int64_t integer(int column) const; // 0 if NULL
    double real(int column) const;          // NaN if NULL
    std::string text(int column) const;     // "" if NULL
    Blob blob(int column) const;            // empty if NULL; valid as long as the row is

private:
    sqlite3_stmt* m_statement;
};

enum class OpenMode : std::uint8_t { ReadOnly, ReadWriteCreate };

class Database
{
public:
    static Result<std::unique_ptr<Database>> open(const std::string& path, OpenMode mode);
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;
    ~Database();

    const std::string& path() const noexcept { return m_path; }

    // Several statements without parameters: the schema, pragmas. Not cached.
    Status script(const char* sql);
    // Runs one statement; binds its `?` in order to integers, doubles (NaN becomes NULL), strings,
    // blobs or nullptr. Prepared once per text.
    template <typename... Args>
    Status execute(std::string_view sql, const Args&... args)
    {
        return query(
            sql, [](const Row&) {}, args...);
    }
    // Calls `onRow(const Row&)` for each row.
    template <typename OnRow, typename... Args>
    Status query(std::string_view sql, OnRow&& onRow, const Args&... args)
    {
        MR_ASSIGN(sqlite3_stmt * s, prepared(sql));
        int position = 0;
        (bind(s, ++position, args), ...);
        while (true) {
            MR_ASSIGN(bool more, step(s));
            if (!more)
                return {};
            onRow(Row(s));
        }
    }
    // The first column of the first row; 0 where there is none.
    template <typename... Args>
    Result<std::int64_t> integer(std::string_view sql, const Args&... args)
    {
        std::int64_t value = 0;
        bool seen = false;
        MR_TRY(query(
            sql,
            [&](const Row& row) {
                if (!seen)
                    value = row.integer(0);
                seen = true;
            },
            args...));
        return value;
    }

    std::int64_t lastInsertId() const;
    // Rows the last INSERT, UPDATE or DELETE touched.
    std::int64_t changes() const;

private:
    Database(std::string path, sqlite3* handle);

    Result<sqlite3_stmt*> prepared(std::string_view sql);
    Result<bool> step(sqlite3_stmt* statement); // false: done, and reset
    Status failure(int code, std::string_view what) const;

    template <typename T>
    static void bind(sqlite3_stmt* s, int position, const T& value)
    {
        if constexpr (std::is_same_v<T, std::nullptr_t>)
            bindNull(s, position);
        else if constexpr (std::is_integral_v<T>)
            bindInteger(s, position, static_cast<std::int64_t>(value));
        else if constexpr (std::is_floating_point_v<T>)
            bindReal(s, position, static_cast<double>(value));
        else if constexpr (std::is_same_v<T, Blob>)
            bindBlob(s, position, value);
        else
            bindText(s, position, std::string_view(value));
    }
    static void bindNull(sqlite3_stmt* s, int position);
    static void bindInteger(sqlite3_stmt* s, int position, std::int64_t value);
    static void bindReal(sqlite3_stmt* s, int position, double value);
    static void bindText(sqlite3_stmt* s, int position, std::string_view value);
    static void bindBlob(sqlite3_stmt* s, int position, Blob value);

    std::string m_path;
    sqlite3* m_handle;
    std::unordered_map<std::string, sqlite3_stmt*> m_statements;
};

// Commits that must survive a loss of power (a status, a checkpoint) are Full; the rest are Normal,
// which in WAL mode cannot damage the file but may lose the last commits.
enum class Durability : std::uint8_t { Normal, Full };

class Transaction
{
public:
    // BEGIN IMMEDIATE: waits for another writer at most the connection's busy time.
    static Result<Transaction> begin(
        Database& database, Durability durability = Durability::Normal);
    Transaction(Transaction&& other) noexcept;
    Transaction& operator=(Transaction&&) = delete;
    ~Transaction();

    Status commit();

private:
    Transaction(Database& database, Durability durability);
    void restoreDurability();

    Database* m_database;
    Durability m_durability;
};

} // namespace mr
