#include "app/cli/data_options.h"

#include "core/base/file.h"

#include <millrace/spec_fields.h>

#include <filesystem>

namespace mr::app {

namespace {

constexpr std::uint64_t kMostListBytes = std::uint64_t{64} << 20;

} // namespace

void DataOptions::addTo(CLI::App& command)
{
    command.add_option("--format", m_format,
        "auto, text, jsonl, json, csv or parquet; files in gzip or zstd are unpacked on the way");
    command.add_option("--map", m_map,
        "Columns: prompt=question,response=answer, text=body or messages=chat; also "
        "answers.text[0], choices[*] (lines A., B., ...) and choices[answer]. Of conversations, "
        "drop=system, tools, tool-calls or reasoning (several joined by +) leaves parts out");
    command.add_option("--pairs", m_pairs,
        "Pairs and ChatML texts: template (as the model's chat template writes them), plain (as "
        "they stand) or auto (template where the model has one)");
    command.add_option("--chat-template", m_chatTemplate,
        "Template for conversations and pairs in place of the model's own, as for a base model "
        "that has none: chatml, llama3 or a file with a Jinja template. It is "
        "saved with a trained model");
    command.add_flag("--skip-bad-rows", m_skipBadRows,
        "Leave out rows that cannot be read; a run folder lists them in skipped.jsonl");
    command.add_option("--exclude-rows", m_excluded,
        "Rows of the first file to leave out: 2,5,8-11, or a file that holds such a list. "
        "`inspect --checks` gives such lists");
}

Result<DataSource> DataOptions::source(const std::string& path) const
{
    DataSource out;
    out.path = path;
    auto format = parseDataFormat(m_format);
    MR_TRY(format.status());
    out.format = format.value();
    MR_TRY(readPairs(m_map, "--map", out.columns));
    if (m_pairs != "auto")
        out.columns["style"] = m_pairs;
    if (!m_chatTemplate.empty())
        out.columns["chat_template"] = m_chatTemplate;
    out.skipBadRows = m_skipBadRows;
    return out;
}

Status DataOptions::exclude(DataSource& first) const
{
    if (m_excluded.empty())
        return {};
    std::string text = m_excluded;
    std::error_code error;
    if (std::filesystem::is_regular_file(m_excluded, error)) {
        MR_ASSIGN(text, readWholeFile(m_excluded, kMostListBytes));
    }
    Result<RowList> rows = RowList::parse(text);
    if (!rows.ok())
        return Status::error(
            ErrorKind::InvalidArgument, "--exclude-rows: " + rows.status().message());
    first.excluded = std::move(rows).value();
    const auto bytes = std::filesystem::file_size(first.path, error);
    first.excludedOf = error ? 0 : bytes;
    return {};
}

} // namespace mr::app
