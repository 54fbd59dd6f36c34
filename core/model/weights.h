// Model folders in and out: weights from (sharded) safetensors to the halves of the master, and
// back to a folder that any Llama loader opens. Piece by piece: no whole model is in memory.
//
// Threads  One thread; blocks on files.
// Errors   InvalidArgument/DataCorrupt name the file and tensor: missing, surplus, misshapen,
//          truncated, not yet fetched (git-lfs), a pickle, an unsupported dtype.

#pragma once

#include "core/model/joined_rows.h"
#include "core/model/master.h"
#include "core/model/model_config.h"
#include "core/model/param_table.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// Tensors of a model folder, located without reading the weights. Everything expected is found
// exactly once, with the right shape; everything else was reported.
enum class WeightForm : std::uint8_t {
    Plain,
    Nf4, // nf4_tensor.h
    Fp8  // fp8_tensor.h
};

struct WeightFiles {
    struct Location {
        std::size_t file = 0; // into `files`
        std::string name;
        WeightForm form = WeightForm::Plain;
    };
    std::vector<std::filesystem::path> files;
    std::vector<Location> of;        // by index of ParamTable::tensors
    std::vector<std::string> dtypes; // distinct, of the expected tensors
    std::uint64_t bytes = 0;
};

// A file of a tied model may have a head as well. It is compared with the embedding, which reads
// both, or believed.
enum class TiedHead : std::uint8_t { Compared, Believed };
Result<WeightFiles> findWeights(const std::filesystem::path& folder, const ModelConfig& config,
    const ParamTable& table, TiedHead head = TiedHead::Compared);

// The master that a folder holds: findWeights, and then each tensor as it is asked for. BF16 and
// F16 sources are exact; NF4 and FP8 are read as the numbers they stand for. The table outlives it.
Result<std::unique_ptr<MasterReader>> openWeights(
    const std::filesystem::path& folder, const ModelConfig& config, const ParamTable& table);

// Elements [first, first + out.high.size()) of a matrix.
using MatrixFill =
    std::function<void(const NamedTensor& tensor, std::int64_t first, const MasterView& out)>;

// Reads the table's tensors from one file, under their names. InvalidArgument/DataCorrupt names
// those that are missing, surplus, misshapen or of an unknown type. The table outlives it.
Result<std::unique_ptr<MasterReader>> openTensors(
    const std::filesystem::path& file, const ParamTable& table);

// Matrices as `fill` makes them, the table's first value for norms, 0 for biases. The table
// outlives it.
std::unique_ptr<MasterReader> madeWeights(const ParamTable& table, MatrixFill fill);

// normal(0, initializer_range) for matrices; Philox keyed by the tensor's name and `seed`, so the
// values do not depend on order, pieces or threads. The table outlives it.
std::unique_ptr<MasterReader> initialWeights(
    const ModelConfig& config, const ParamTable& table, std::uint64_t seed);

// XXH3-128 of the F32 master, little-endian, tensors in bytewise name order, tied once
// (decisions.md 16); carried tensors among them, as the bytes they are. 32 hex digits. `also` gets
// the pieces of the master, so that nothing is read twice.
Result<std::string> weightsHash(
    const ParamTable& table, MasterReader& master, const MasterSink& also = {});

enum class ExportType : std::uint8_t { F32, BF16, F16 };
// "fp32", "bf16", "fp16"
std::string_view name(ExportType type) noexcept;
std::optional<ExportType> parseExportType(std::string_view text) noexcept;

// Published folders cut at 5 GB; loaders take any length.
inline constexpr std::uint64_t kShardBytes = 5'000'000'000;

// Writes a model folder: model.safetensors (beyond `shardBytes` in shards with an index),
// config.json (as read; only its dtype follows `type`), wide tensors in F32, carried tensors as
// they are, and every tokenizer and generation file of `carryFrom` unchanged. Files are written
// whole (temporary file, fsync, rename); the folder is created.
Status saveModel(const std::filesystem::path& folder, const ModelConfig& config,
    const ParamTable& table, MasterReader& master, ExportType type,
    const std::filesystem::path& carryFrom, std::uint64_t shardBytes = kShardBytes);

// InvalidArgument names a file that saveModel() would refuse to carry from there: a link that leads
// out of the folder (or the cache it is a part of), so that a private file would be published with
// the model, and a .json that is none. To be asked before a run; also says ok where nothing is
// carried.
Status checkCarriedFiles(const std::filesystem::path& carryFrom);

} // namespace mr
