#include "core/model/prepared_base.h"

#include "core/base/bytes.h"
#include "core/base/folder_lock.h"
#include "core/device/adamw.h"
#include "core/model/packed_group.h"
#include "core/model/safetensors.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace mr {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kForm = "1"; // of the file
constexpr const char* kHash = "xxh3";
constexpr std::size_t kCopiedBytes = std::size_t{1} << 22;

struct HashState {
    HashState() { XXH3_64bits_reset(state.get()); }
    void add(std::span<const std::byte> bytes)
    {
        XXH3_64bits_update(state.get(), bytes.data(), bytes.size());
    }
    std::uint64_t value() const { return XXH3_64bits_digest(state.get()); }

    std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state{
        XXH3_createState(), XXH3_freeState};
};

struct Block {
    GroupId group;
    std::string name; // of its tensor
    std::size_t bytes = 0;
};

std::size_t blockBytes(const ParamTable& trained, GroupId group, DType compute)
{
    const std::size_t packed = packedGroup(trained, group, compute).bytes;
    return packed > 0 ? packed
                      : sizeOf(compute) * static_cast<std::size_t>(frozenElements(trained, group));
}

std::vector<Block> blocksOf(const ParamTable& trained, DType compute)
{
    std::vector<Block> blocks;
    for (std::size_t g = 0; g < trained.groups.size(); ++g) {
        const GroupId group{static_cast<std::int32_t>(g)};
        if (isFrozenBlock(trained, group))
            blocks.push_back(
                {group, fmt::format("block.{}", g - 1), blockBytes(trained, group, compute)});
    }
    return blocks;
}

// The bytes of one block after the other, made as they are asked for.
class BlockBytes
{
public:
    BlockBytes(const PreparedBaseSpec& spec, MasterReader& model)
        : m_spec(spec)
        , m_model(model)
        , m_packer(spec.trained, spec.compute, model,
              [this](GroupId, std::size_t at, std::span<const std::byte> bytes) {
                  return put(at, bytes);
              })
    {
    }

    void begin(GroupId group)
    {
        m_group = group;
        m_tensors.clear();
        for (const NamedTensor& tensor : wholeModel(m_spec.trained).tensors)
            if (tensor.group == group)
                m_tensors.push_back(&tensor);
        if (!m_packer.packs(group)) // packed ones lie in the order of the table
            std::ranges::sort(m_tensors, {}, &NamedTensor::first);
        m_next = m_made = m_taken = 0;
        m_done = 0;
        m_bytes.clear();
    }

    // The next bytes of the block; zeros behind its last tensor.
    Status take(std::span<std::byte> out)
    {
        while (m_bytes.size() - m_taken < out.size() && m_next < m_tensors.size()) {
            m_bytes.erase(m_bytes.begin(),
                m_bytes.begin() + static_cast<std::ptrdiff_t>(std::exchange(m_taken, 0)));
            MR_TRY(make());
        }
        const std::size_t count = std::min(out.size(), m_bytes.size() - m_taken);
        std::memcpy(out.data(), m_bytes.data() + m_taken, count);
        std::fill(out.begin() + static_cast<std::ptrdiff_t>(count), out.end(), std::byte{});
        m_taken += count;
        return {};
    }

private:
    // The next piece of a tensor.
    Status make()
    {
        const NamedTensor& tensor = *m_tensors[m_next];
        const std::int64_t count = std::min(kMasterPiece, tensor.count() - m_done);
        const std::int64_t first = tensor.first + m_done;
        const MasterView view = m_piece.view(count);
        MR_TRY(m_model.read(m_group, first, view));
        m_done += count;
        if (m_done == tensor.count()) {
            ++m_next;
            m_done = 0;
        }
        if (m_packer.packs(m_group))
            return m_packer.add(m_group, first, view);
        const std::size_t at = sizeOf(m_spec.compute) * static_cast<std::size_t>(first);
        if (m_spec.compute == DType::BF16)
            return put(at, std::as_bytes(view.high));
        m_joined.resize(view.high.size());
        std::ranges::transform(view.high, view.low, m_joined.begin(), joinHalves);
        return put(at, std::as_bytes(std::span(m_joined)));
    }

    Status put(std::size_t at, std::span<const std::byte> bytes)
    {
        m_bytes.resize(m_bytes.size() + (at - m_made)); // the gap before it
        m_bytes.insert(m_bytes.end(), bytes.begin(), bytes.end());
        m_made = at + bytes.size();
        return {};
    }

    const PreparedBaseSpec& m_spec;
    MasterReader& m_model;
    GroupPacker m_packer;
    GroupId m_group;
    std::vector<const NamedTensor*> m_tensors;
    std::size_t m_next = 0;         // tensor
    std::int64_t m_done = 0;        // elements of it
    std::vector<std::byte> m_bytes; // made, and not all taken
    std::size_t m_taken = 0;        // of them
    std::size_t m_made = 0;         // bytes of the block
    MasterPiece m_piece;
    std::vector<float> m_joined;
};

class PreparedFile
{
public:
    explicit PreparedFile(const PreparedBaseSpec& spec)
        : m_spec(spec)
        , m_blocks(blocksOf(spec.trained, spec.compute))
        , m_all(preparedBytes(spec.trained, spec.compute))
    {
        std::string words =
            fmt::format("{} {} {} {}", kForm, spec.compute == DType::BF16 ? "bf16" : "f32",
                spec.trained.frozen->settings.nf4Base ? "nf4" : "", spec.source);
        for (const Block& block : m_blocks)
            words += fmt::format(" {} {}", block.name, block.bytes);
        m_folder = spec.folder /
                   fmt::format("millrace-base-{:016x}", XXH3_64bits(words.data(), words.size()));
        m_path = m_folder / kSafetensorsFile;
    }

    Result<BaseFiles> open()
    {
        std::error_code error;
        fs::create_directory(m_folder, error);
        if (error)
            return Status::error(
                ErrorKind::Io, "cannot create " + m_folder.string() + ": " + error.message());
        MR_ASSIGN(const FolderLock lock, FolderLock::take(m_folder));
        MR_ASSIGN(std::optional<BaseFiles> found, find());
        if (found)
            return std::move(*found);
        MR_TRY(make());
        MR_ASSIGN(found, find());
        if (found)
            return std::move(*found);
        return Status::error(ErrorKind::DataCorrupt,
            m_path.string() + ": does not give back what was written to it; the drive is faulty or "
                              "another program changed the file");
    }

private:
    // Nothing: there is no file, or not a good one.
    Result<std::optional<BaseFiles>> find()
    {
        std::error_code error;
        if (!fs::exists(m_path, error))
            return std::optional<BaseFiles>();
        auto reader = SafetensorsReader::open(m_path);
        if (!reader.ok() || !fits(reader.value()))
            return std::optional<BaseFiles>();
        MR_ASSIGN(const std::uint64_t hash, hashOf(reader.value()));
        std::uint64_t kept = 0;
        MR_TRY(reader.value().readBytes(kHash, 0, std::as_writable_bytes(std::span(&kept, 1))));
        if (hash != kept)
            return std::optional<BaseFiles>();
        BaseFiles base{{m_path}, {}};
        for (const Block& block : m_blocks)
            base.extents.push_back(
                {block.group, 0, block.bytes, 0, reader.value().entries().at(block.name).begin});
        return std::optional(std::move(base));
    }

    bool fits(const SafetensorsReader& reader) const
    {
        const auto has = [&](const std::string& name, std::size_t bytes) {
            const auto entry = reader.entries().find(name);
            return entry != reader.entries().end() &&
                   entry->second.end - entry->second.begin == bytes;
        };
        return has(kHash, sizeof(std::uint64_t)) &&
               std::ranges::all_of(
                   m_blocks, [&](const Block& block) { return has(block.name, block.bytes); });
    }

    Result<std::uint64_t> hashOf(const SafetensorsReader& reader)
    {
        HashState hash;
        std::vector<std::byte> piece(kCopiedBytes);
        m_done = 0;
        for (const Block& block : m_blocks)
            for (std::size_t at = 0; at < block.bytes; at += piece.size()) {
                const auto part = std::span(piece).first(std::min(piece.size(), block.bytes - at));
                MR_TRY(reader.readBytes(block.name, at, part));
                hash.add(part);
                MR_TRY(goOn(part.size()));
            }
        return hash.value();
    }

    Status make()
    {
        MR_TRY(checkRoom());
        MR_ASSIGN(const auto model, m_spec.open());
        BlockBytes bytes(m_spec, *model);
        HashState hash;
        m_done = 0;
        std::vector<SafetensorSource> sources;
        for (const Block& block : m_blocks)
            sources.push_back({block.name, "U8", {static_cast<std::int64_t>(block.bytes)},
                block.bytes, [&, group = block.group](std::uint64_t offset, auto out) -> Status {
                    if (offset == 0)
                        bytes.begin(group);
                    MR_TRY(bytes.take(out));
                    hash.add(out);
                    return goOn(out.size());
                }});
        sources.push_back({kHash, "U8", {sizeof(std::uint64_t)}, sizeof(std::uint64_t),
            [&](std::uint64_t, std::span<std::byte> out) {
                const std::uint64_t value = hash.value();
                std::memcpy(out.data(), &value, sizeof(value));
                return Status();
            }});
        return writeSafetensors(m_path, sources);
    }

    Status checkRoom() const
    {
        MR_ASSIGN(const std::uint64_t free, freeBytes(m_folder));
        if (free >= m_all)
            return {};
        return Status::error(ErrorKind::OutOfMemory,
            "the frozen weights in the form that this run reads need " + formatBytes(m_all) +
                " and " + m_spec.folder.string() + " has " + formatBytes(free) +
                " free; free some, or name a folder on another disk");
    }

    Status goOn(std::size_t bytes)
    {
        if (m_spec.cancelled && m_spec.cancelled())
            return Status::error(
                ErrorKind::Cancelled, "stopped while " + m_path.string() + " was prepared");
        m_done += bytes;
        if (m_spec.progress)
            m_spec.progress(m_done, m_all);
        return {};
    }

    const PreparedBaseSpec& m_spec;
    std::vector<Block> m_blocks;
    std::uint64_t m_all = 0;
    std::uint64_t m_done = 0;
    fs::path m_folder;
    fs::path m_path;
};

} // namespace

std::uint64_t preparedBytes(const ParamTable& trained, DType compute)
{
    std::uint64_t all = 0;
    for (const Block& block : blocksOf(trained, compute))
        all += block.bytes;
    return all;
}

Result<BaseFiles> preparedBase(const PreparedBaseSpec& spec)
{
    return PreparedFile(spec).open();
}

} // namespace mr
