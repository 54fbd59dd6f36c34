// FrozenModel: a model of which some layers, or an adapter beside it, are trained.
//
// A table of trained parameters (ParamTable) points to it. Its groups are those of the model: a
// group of which nothing is trained is empty, and one with an adapter has the adapter's matrices.
//
// LoRA (Hu et al., "LoRA", arXiv 2106.09685): a linear module with weight W (rows, in) gives
// W x + scale B A x, with A (rank, in) and B (rows, rank). scale is alpha / rank, or with rank
// stabilisation (Kalajdzievski, arXiv 2312.03732) alpha / sqrt(rank). A is drawn from
// +-1 / sqrt(in), B is zero, so a fresh adapter changes nothing.
//
// DoRA (Liu et al., arXiv 2402.09353): each row of W + scale B A is scaled to a length of its own,
// the magnitude, which is trained beside A and B and starts as the row's length in W.
//
// Modules that share an input (q, k and v; gate and up) have one A, their rows below each other, so
// that the input is read once.
//
// Threads  Values; not changed once built.
// Units    Elements.

#pragma once

#include "core/model/layout.h"
#include "core/model/master.h"
#include "core/model/param_table.h"

#include <millrace/status.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mr {

// A rule holds for a module if its key, a regular expression, matches the module's name whole or
// behind a dot (PEFT's rank_pattern and alpha_pattern). In PEFT the first that does counts, by the
// order of a file; rules that give a module different values are refused here.
struct AdapterRule {
    std::string key;
    double value = 0.0;

    bool operator==(const AdapterRule&) const = default;
};

// Which modules have an adapter, and of which rank: the fields of PEFT's LoraConfig that we train.
struct AdapterSettings {
    std::int64_t rank = 16;
    double alpha = 16.0;
    bool rankStabilised = false;
    bool dora = false;
    // Ends of module names ("q_proj", "mlp.down_proj"); empty: every linear module of the blocks.
    std::vector<std::string> targets = {};
    std::string targetPattern = {};         // in their place: matches the whole name
    std::vector<std::string> excluded = {}; // ends of names that have none
    std::vector<std::int64_t> layers = {};  // blocks; empty: all
    std::vector<AdapterRule> ranks = {};
    std::vector<AdapterRule> alphas = {};
    bool nf4Base = false;                  // QLoRA: the matrices of the blocks are held in 4 bits
    std::vector<std::string> saved = {};   // modules that are trained whole (saved_modules.h)
    std::vector<std::int64_t> tokens = {}; // rows of the embedding that are, in the order of files

    bool operator==(const AdapterSettings&) const = default;
};

// One linear module with an adapter.
struct AdapterModule {
    std::string name;          // "model.layers.0.self_attn.q_proj"
    SlotKind product{};        // the slot of the model that has its rows
    std::int64_t firstRow = 0; // of that slot
    std::int64_t rows = 0;
    std::int64_t in = 0;
    std::int64_t rank = 0;
    std::int64_t firstRank = 0; // among the ranks of the modules of its product
    float scale = 0.0F;
    std::int64_t a = 0;         // element of the trained group where A begins
    std::int64_t b = 0;         // ... and B
    std::int64_t magnitude = 0; // ... and with DoRA the magnitudes
};

// Elements of a group of the model in whose place an adapter has trained ones.
struct ReplacedRange {
    std::int64_t model = 0;   // the first, in the group of the model
    std::int64_t trained = 0; // and in the trained group
    std::int64_t count = 0;
};

struct FrozenModel {
    ParamTable model;                                 // all of it
    std::vector<std::int64_t> elements;               // by group: so many, the first ones, stay
    std::vector<std::vector<AdapterModule>> adapters; // by group, in the order of the model
    std::vector<std::vector<ReplacedRange>> replaced; // by group
    AdapterSettings settings;                         // of the adapter, if there is one
    bool inTurns = false; // the trained layer is one of those that take turns
};

// All of the model, whatever is trained.
const ParamTable& wholeModel(const ParamTable& trained) noexcept;
// Is what is trained an adapter?
bool isAdapter(const ParamTable& trained) noexcept;
// The table in which the model's own weights of a block lie.
const ParamTable& modelTable(const ParamTable& trained, GroupId group) noexcept;
// Is the tensor a matrix of a block, which an adapter may have and NF4 may hold?
bool isLinear(const ParamTable& model, const NamedTensor& tensor);
// Elements of a group that no step changes.
std::int64_t frozenElements(const ParamTable& trained, GroupId group) noexcept;
// Ranks of the modules of one product, at most: columns of x A^T. 0: there is no adapter.
std::int64_t mostAdapterRanks(const ParamTable& trained) noexcept;
// The memory that a micro-batch has for the adapter, if one is trained, with `dropout` in [0, 1).
void setAdapterMemory(const ParamTable& trained, double dropout, MicroShape& micro) noexcept;

// The groups that are named are trained, the others frozen. InvalidArgument: none is named, or one
// that the model has not.
Result<ParamTable> trainedLayers(const ParamTable& model, const std::vector<GroupId>& groups);
// The group that is trained in a turn; the others are, in theirs. Precondition: the model has it.
ParamTable turnTable(const ParamTable& model, GroupId group);
// Nothing is trained.
ParamTable frozenTable(const ParamTable& model);
// Is what is trained one of the groups that take turns?
bool isInTurns(const ParamTable& trained) noexcept;

// An adapter on the blocks of the model, which is frozen. InvalidArgument names a rank outside
// [1, smaller side], an alpha of 0, or a target that no module has, with those there are.
Result<ParamTable> adapterTable(const ParamTable& model, const AdapterSettings& settings);

// The matrices of a fresh adapter: Philox keyed by the tensor's name and `seed`; all else is 0. The
// table outlives it. All of an adapter: freshAdapter() of dora.h.
std::unique_ptr<MasterReader> initialAdapter(const ParamTable& table, std::uint64_t seed);

} // namespace mr
