#include "core/data/documents.h"
#include "fuzz/fuzz_rig.h"
#include "fuzz/targets.h"

#include <algorithm>
#include <array>

namespace mr::fuzz {
namespace {

struct Kind {
    char letter;
    DataFormat format;
    const char* name;
};

constexpr std::array<Kind, 6> kKinds = {
    {{'a', DataFormat::Auto, "rows"}, {'l', DataFormat::Jsonl, "rows.jsonl"},
        {'j', DataFormat::Json, "rows.json"}, {'c', DataFormat::Csv, "rows.csv"},
        {'t', DataFormat::Text, "rows.txt"}, {'s', DataFormat::Text, "split.txt"}}};

} // namespace

void records(std::string_view bytes)
{
    static const FuzzFolder folder;
    if (bytes.empty())
        return;
    const auto* kind = std::find_if(
        kKinds.begin(), kKinds.end(), [&](const Kind& k) { return k.letter == bytes[0]; });
    if (kind == kKinds.end())
        return;
    DataSource source;
    source.path = folder.write(kind->name, bytes.substr(1)).string();
    source.format = kind->format;
    DatasetShape shape;
    if (!check(findShape(source, shape)))
        return;
    TextCut cut;
    cut.perLine = kind->letter == 't';
    cut.split = kind->letter == 's' ? "<end>" : "";
    std::int64_t last = 0;
    const auto take = [&](const Document& document) {
        require(document.row >= last && document.line >= 1, "rows out of order");
        last = document.row;
        return Status();
    };
    (void)check(readDocuments(source, shape, cut, take));
    last = 0;
    (void)check(readDocuments(source, shape, cut, take, [&](const BadRow& row) {
        require(row.row >= last && row.line >= 1 && !row.message.empty(), "bad rows out of order");
        last = row.row;
        return Status();
    }));
    (void)describeReading(source.path, recordOptions(source, shape.format));
    folder.remove(kind->name);
}

} // namespace mr::fuzz
