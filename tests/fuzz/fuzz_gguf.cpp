#include "core/gguf/gguf_file.h"
#include "core/gguf/gguf_writer.h"
#include "fuzz/fuzz_rig.h"
#include "fuzz/targets.h"

#include <algorithm>
#include <vector>

namespace mr::fuzz {
namespace {

constexpr std::int64_t kMostFloats = 1 << 14;

void readTensor(const GgufFile& file, const GgufTensor& tensor, std::size_t fileBytes)
{
    require(tensor.bytes <= fileBytes && tensor.offset <= fileBytes - tensor.bytes,
        "bytes outside the file");
    require(file.tensor(tensor.name) == &tensor, "a tensor that its name does not find");
    const std::int64_t count = tensor.count();
    std::vector<float> values(static_cast<std::size_t>(std::min(count, kMostFloats)));
    const std::int64_t last = count - static_cast<std::int64_t>(values.size());
    require(file.readFloats(tensor, last, values).ok(), "unreadable elements");
    require(!check(file.readFloats(tensor, last + 1, values)), "elements behind the last");
}

} // namespace

void gguf(std::string_view bytes)
{
    static const FuzzFolder folder;
    Result<GgufFile> file = GgufFile::open(folder.write("model.gguf", bytes));
    if (!check(file))
        return;
    for (const GgufTensor& tensor : file.value().tensors())
        readTensor(file.value(), tensor, bytes.size());
    // Values that were read can be written, but for empty arrays, and are then read alike.
    const std::filesystem::path copy = folder.path() / "copy.gguf";
    if (!check(writeGguf(copy, file.value().values(), {})))
        return;
    Result<GgufFile> again = GgufFile::open(copy);
    require(check(again), "a written file is refused");
    require(again.value().values().size() == file.value().values().size(), "values are lost");
}

} // namespace mr::fuzz
