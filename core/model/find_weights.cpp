// findWeights: which file holds which tensor, and everything that is wrong with a model folder.

#include "core/base/shown_text.h"
#include "core/model/fp8_tensor.h"
#include "core/model/nf4_tensor.h"
#include "core/model/weight_folder.h"
#include "core/model/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

namespace mr {

namespace {

namespace fs = std::filesystem;
constexpr std::size_t kCompareBytes = 1U << 20;

std::string shapeText(const std::vector<std::int64_t>& shape)
{
    std::string text;
    for (const std::int64_t n : shape)
        text += (text.empty() ? "" : ", ") + std::to_string(n);
    return "[" + text + "]";
}

// Names in the files of this model.
std::string headName(const ParamTable& table)
{
    return std::string(table.prefix.head) + "lm_head.weight";
}

// A file of a tied model that has a head as well: harmless if it is the embedding over again.
Status checkTiedHead(const WeightFolder& found, const std::string& head, const std::string& table)
{
    if (!found.fileOf.contains(table))
        return {}; // reported as missing
    const SafetensorsReader& a = found.readers[found.fileOf.at(head)];
    const SafetensorsReader& b = found.readers[found.fileOf.at(table)];
    const SafetensorEntry& x = found.entry(head);
    const SafetensorEntry& y = found.entry(table);
    bool equal = x.dtype == y.dtype && x.shape == y.shape;
    std::vector<std::byte> left(kCompareBytes);
    std::vector<std::byte> right(kCompareBytes);
    for (std::uint64_t at = 0; equal && at < x.end - x.begin; at += kCompareBytes) {
        const std::size_t count = std::min<std::uint64_t>(kCompareBytes, x.end - x.begin - at);
        MR_TRY(a.readBytes(head, at, std::span(left).first(count)));
        MR_TRY(b.readBytes(table, at, std::span(right).first(count)));
        equal = std::memcmp(left.data(), right.data(), count) == 0;
    }
    if (equal)
        return {};
    return refuseWeights(
        a.path(), "config.json ties the head to the embedding, but " + head + " differs from " +
                      table + "; set tie_word_embeddings to false if the model has its own head");
}

struct Faults {
    std::vector<std::string> missing;
    std::vector<std::string> misshapen;
    std::vector<std::string> types;
    std::vector<std::string> surplus;

    Status status(const fs::path& folder, const std::string& untiedHead) const
    {
        std::string text;
        const auto add = [&](const char* what, const std::vector<std::string>& items) {
            if (!items.empty())
                text += (text.empty() ? "" : "; ") + std::string(what) + listedNames(items);
        };
        add("missing tensors: ", missing);
        add("wrong shapes: ", misshapen);
        add("dtypes that are not read (F32, F16 and BF16 are): ", types);
        add("tensors the config does not explain: ", surplus);
        if (text.empty())
            return {};
        if (missing.size() == 1 && missing.front() == untiedHead)
            text += " (config.json does not say tie_word_embeddings: true)";
        return refuseWeights(folder, text);
    }
};

void judge(const NamedTensor& tensor, const SafetensorEntry& entry, Faults& faults)
{
    const bool isQuantised = entry.dtype == "U8" || entry.dtype == "I8";
    if (entry.shape != tensor.fileShape() && !isQuantised)
        faults.misshapen.push_back(tensor.name + " is " + shapeText(entry.shape) +
                                   ", config.json asks for " + shapeText(tensor.fileShape()));
    if (isQuantised)
        faults.types.push_back(tensor.name + " is quantised, and not to NF4 by bitsandbytes");
    else if (entry.dtype != "F32" && entry.dtype != "F16" && entry.dtype != "BF16")
        faults.types.push_back(tensor.name + " is " + entry.dtype);
}

// The tensors that belong to a matrix in NF4 are no surplus. False: it is not in NF4.
bool takeNf4Parts(const std::string& name, WeightFolder& found)
{
    if (!found.fileOf.contains(name + std::string(kNf4State)))
        return false;
    for (const std::string_view part : kNf4Parts)
        found.fileOf.erase(name + std::string(part));
    return true;
}

// Likewise of one in FP8: its factors, and those of activations.
bool takeFp8Parts(const NamedTensor& tensor, const SafetensorEntry& entry, WeightFolder& found)
{
    constexpr std::string_view kEnd = ".weight";
    const std::string scale = tensor.name + std::string(kFp8Scale);
    if (entry.dtype != "F8_E4M3" || entry.shape != tensor.shape || tensor.shape.size() != 2 ||
        !tensor.name.ends_with(kEnd) || !found.fileOf.contains(scale))
        return false;
    found.fileOf.erase(scale);
    const std::string module = tensor.name.substr(0, tensor.name.size() - kEnd.size());
    for (const std::string_view part : kFp8Activations)
        found.fileOf.erase(module + std::string(part));
    return true;
}

WeightForm takeForm(const NamedTensor& tensor, const SafetensorEntry& entry, WeightFolder& found)
{
    if (takeNf4Parts(tensor.name, found))
        return WeightForm::Nf4;
    return takeFp8Parts(tensor, entry, found) ? WeightForm::Fp8 : WeightForm::Plain;
}

// Every tensor of the file that the table does not have, but one that is not a parameter.
void listSurplus(const WeightFolder& found, const ParamTable& table, bool tied, Faults& faults)
{
    std::set<std::string> known;
    for (const CarriedTensor& tensor : table.carried)
        known.insert(tensor.name);
    if (tied)
        known.insert(headName(table));
    for (const auto& [name, file] : found.fileOf)
        if (!name.ends_with("rotary_emb.inv_freq") && !known.contains(name))
            faults.surplus.push_back(shownName(name));
}

// The table that inputs of blocks are read from.
void judgeInputTable(const ModelConfig& config, const ParamTable& table, Faults& faults)
{
    if (!config.inputsAreOnHost())
        return;
    const auto found = std::ranges::find_if(table.carried, &CarriedTensor::isInputTable);
    if (found == table.carried.end())
        return faults.missing.push_back(
            std::string(config.prefix.model) + std::string(kInputTableName));
    NamedTensor wanted;
    wanted.name = found->name;
    wanted.shape = {config.inputVocab, config.inputColumns()};
    judge(wanted, found->entry, faults);
}

Result<WeightFiles> matchTensors(
    const fs::path& folder, const ModelConfig& config, const ParamTable& table, WeightFolder& found)
{
    WeightFiles out;
    Faults faults;
    std::set<std::string> dtypes;
    for (const NamedTensor& tensor : table.tensors) {
        const auto at = found.fileOf.find(tensor.name);
        if (at == found.fileOf.end()) {
            if (tensor.firstColumn == 0)
                faults.missing.push_back(tensor.name);
            continue;
        }
        const SafetensorEntry& entry = found.entry(tensor.name);
        if (tensor.isPart()) { // other groups have the others
            if (tensor.firstColumn == 0)
                judge(tensor, entry, faults);
            dtypes.insert(entry.dtype);
            out.of.push_back({at->second, tensor.name, WeightForm::Plain});
            continue;
        }
        const WeightForm form = takeForm(tensor, entry, found);
        if (form == WeightForm::Plain)
            judge(tensor, entry, faults);
        dtypes.insert(form == WeightForm::Nf4 ? "NF4" : entry.dtype);
        out.of.push_back({at->second, tensor.name, form});
        found.fileOf.erase(at);
    }
    for (const NamedTensor& tensor : table.tensors)
        if (tensor.isPart())
            found.fileOf.erase(tensor.name);
    judgeInputTable(config, table, faults);
    listSurplus(found, table, config.tiedEmbedding, faults);
    MR_TRY(faults.status(folder, config.tiedEmbedding ? std::string() : headName(table)));
    out.dtypes.assign(dtypes.begin(), dtypes.end());
    return out;
}

} // namespace

Result<WeightFiles> findWeights(
    const fs::path& folder, const ModelConfig& config, const ParamTable& table, TiedHead head)
{
    MR_ASSIGN(WeightFolder found, openWeightFolder(folder));
    if (config.tiedEmbedding && head == TiedHead::Compared &&
        found.fileOf.contains(headName(table)))
        MR_TRY(checkTiedHead(found, headName(table), table.tensors.front().name));
    Result<WeightFiles> files = matchTensors(folder, config, table, found);
    MR_TRY(files.status());
    files.value().files = found.files;
    std::error_code error;
    for (const fs::path& file : found.files)
        files.value().bytes += fs::file_size(file, error);
    return files;
}

} // namespace mr
