#include "core/data/json_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mr {

using simdjson::dom::element_type;

Status JsonRows::put(std::string& text, std::int64_t line)
{
    const std::size_t bytes = text.size();
    text.append(simdjson::SIMDJSON_PADDING, '\0');
    simdjson::dom::element element;
    const simdjson::error_code code = m_parser.parse(text.data(), bytes, false).get(element);
    ++m_record.row;
    m_record.line = line;
    if (code != simdjson::SUCCESS)
        return broken(std::string_view(text).substr(0, bytes), code);
    const Form form = formOf(element);
    if (form == Form::Other || (m_form && *m_form != form))
        return otherForm(form);
    if (form == Form::Object && !fill(element.get_object().value_unsafe()))
        return bad(RowFault::Columns, line, "more than 4096 columns");
    fill(form, element);
    m_form = form;
    return m_sink(m_record);
}

// Looks at all elements of a list.
JsonRows::Form JsonRows::formOf(simdjson::dom::element element)
{
    if (element.is_object())
        return Form::Object;
    if (element.is_string())
        return Form::Text;
    simdjson::dom::array list;
    if (element.get(list) != simdjson::SUCCESS || list.size() == 0 || list.size() > kMaxColumns)
        return Form::Other;
    const auto all = [&](element_type type) {
        return std::all_of(
            list.begin(), list.end(), [type](const auto& e) { return e.type() == type; });
    };
    return all(element_type::STRING)   ? Form::Texts
           : all(element_type::OBJECT) ? Form::Messages
                                       : Form::Other;
}

Status JsonRows::leaveOut(RowFault fault, const std::string& message)
{
    ++m_record.row;
    m_record.line = 0;
    return bad(fault, 0, message);
}

Status JsonRows::bad(RowFault fault, std::int64_t line, const std::string& message) const
{
    const Status status =
        line > 0 ? jsonError(m_path, line, message) : dataError(m_path, {m_record.row, 0}, message);
    return putBadRow(m_options, {m_record.row, line, fault, status.message()});
}

Status JsonRows::broken(std::string_view text, simdjson::error_code code) const
{
    if (const std::size_t at = firstBadUtf8(text); at != std::string_view::npos) {
        const auto lines =
            std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
        return bad(
            RowFault::Utf8, m_record.line + lines, "not valid UTF-8; save the file as UTF-8");
    }
    if (text.find('\0') != std::string_view::npos)
        return bad(RowFault::Nul, m_record.line, "holds a byte of value 0, which no text has");
    const char* why = simdjson::error_message(code);
    if (code == simdjson::DEPTH_ERROR)
        why = "nested too deeply";
    return bad(RowFault::Json, m_record.line,
        fmt::format("not valid JSON (row {}): {}", m_record.row, why));
}

Status JsonRows::otherForm(Form form) const
{
    constexpr std::array<const char*, 5> kForms{"an object with columns", "a text",
        "a list of texts", "a list of objects", "none of what a row can be"};
    const auto words = [&](Form f) { return kForms.at(static_cast<std::size_t>(f)); };
    const std::string row = fmt::format("row {}", m_record.row);
    if (m_form && *m_form != Form::Object)
        return bad(RowFault::Shape, m_record.line,
            row + " is " + words(form) + " where the rows before it are " + words(*m_form) +
                " each");
    return bad(RowFault::Shape, m_record.line,
        row + R"( is not an object with named columns ({"prompt": ..., "response": ...}))" +
            (m_form ? " as the rows before it"
                    : ", nor a text, a list of texts or a list of messages"));
}

void JsonRows::fill(Form form, simdjson::dom::element element)
{
    if (form == Form::Object)
        return;
    std::size_t used = 1;
    if (form == Form::Text)
        assign(cell(0, "text"), element);
    if (form == Form::Messages)
        assign(cell(0, "messages"), element);
    if (form == Form::Texts) {
        used = 0;
        const simdjson::dom::array list = element.get_array().value_unsafe();
        for (const auto text : list) {
            ++used;
            assign(cell(used - 1, fmt::format("column{}", used)), text);
        }
    }
    m_record.cells.resize(used);
}

// False: too many columns. The last of two equal names counts, as everywhere else in JSON.
bool JsonRows::fill(simdjson::dom::object object)
{
    std::size_t used = 0;
    for (const auto field : object) {
        std::size_t at = 0;
        while (at < used && m_record.cells[at].name != field.key)
            ++at;
        if (at == kMaxColumns)
            return false;
        used = std::max(used, at + 1);
        assign(cell(at, field.key), field.value);
    }
    m_record.cells.resize(used);
    return true;
}

Cell& JsonRows::cell(std::size_t at, std::string_view name)
{
    if (at == m_record.cells.size())
        m_record.cells.emplace_back();
    m_record.cells[at].name = name;
    return m_record.cells[at];
}

void JsonRows::assign(Cell& cell, simdjson::dom::element value)
{
    cell.text.clear();
    switch (value.type()) {
    case element_type::STRING:
        cell.kind = CellKind::Text;
        cell.text = std::string_view(value);
        return;
    case element_type::NULL_VALUE:
        cell.kind = CellKind::Null;
        return;
    case element_type::ARRAY:
    case element_type::OBJECT:
        cell.kind = CellKind::Nested;
        cell.text = simdjson::minify(value);
        return;
    default:
        cell.kind = CellKind::Number;
        cell.text = simdjson::minify(value);
        return;
    }
}

} // namespace mr
