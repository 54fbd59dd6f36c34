// JsonRows: the elements of a JSON list, or the lines of a file, as records.
//
// A row is an object with columns, a text, a list of texts or a list of objects (a conversation);
// the first one decides for all.
//
// Threads    Confined to its owner.
// Ownership  Borrows path, options and sink.
// Errors     What is wrong with a row goes to RecordOptions::onBadRow, or is InvalidArgument.

#pragma once

#include "core/data/record_formats.h"

#include <simdjson.h>

#include <optional>
#include <string>

namespace mr {

class JsonRows
{
public:
    JsonRows(
        const std::filesystem::path& path, const RecordOptions& options, const RecordSink& sink)
        : m_path(path)
        , m_options(options)
        , m_sink(sink)
    {
    }

    // `text` begins on `line`, or has none (0). Its capacity may grow: the parser wants padding
    // behind it.
    Status put(std::string& text, std::int64_t line);
    // The next row is bad.
    Status leaveOut(RowFault fault, const std::string& message);
    std::int64_t row() const noexcept { return m_record.row; }

private:
    enum class Form : std::uint8_t { Object, Text, Texts, Messages, Other };

    static Form formOf(simdjson::dom::element element);
    Status bad(RowFault fault, std::int64_t line, const std::string& message) const;
    Status broken(std::string_view text, simdjson::error_code code) const;
    Status otherForm(Form form) const;
    void fill(Form form, simdjson::dom::element element);
    bool fill(simdjson::dom::object object);
    Cell& cell(std::size_t at, std::string_view name);
    static void assign(Cell& cell, simdjson::dom::element value);

    const std::filesystem::path& m_path;
    const RecordOptions& m_options;
    const RecordSink& m_sink;
    simdjson::dom::parser m_parser;
    std::optional<Form> m_form;
    Record m_record;
};

} // namespace mr
