// OpenedModel: a model folder, and the adapter beside it, opened to be read as one model.
//
// Threads    One thread; blocks on files.
// Ownership  Owns readers and table; it stays where it is once open() has run.
// Errors     InvalidArgument: the adapter is another model's, or the original weights are not
//            there; else those of config and weights.

#pragma once

#include "core/model/merged_model.h"
#include "core/model/weights.h"
#include "core/save/model_folder.h"

#include <millrace/status.h>

#include <memory>
#include <optional>

namespace mr {

class OpenedModel
{
public:
    OpenedModel() = default;
    OpenedModel(const OpenedModel&) = delete;
    OpenedModel& operator=(const OpenedModel&) = delete;

    // `original`: an adapter from beside NF4 goes into the weights before they were quantised.
    Status open(const ModelPlace& place, bool original);

    const ModelConfig& config() const noexcept { return m_config; }
    // The whole model's.
    const ParamTable& table() const noexcept { return m_adapter ? wholeModel(m_table) : m_table; }
    bool hasAdapter() const noexcept { return m_adapter != nullptr; }
    bool isNf4() const noexcept { return m_nf4 != nullptr; }

    // The model with the adapter in it, or as it is where there is none; in F32.
    MasterReader& whole() { return m_merged ? *m_merged : base(); }
    // The model beside the adapter.
    MasterReader& unmerged() const { return base(); }
    // Counts what whole() has read.
    MergeCount count() const { return m_merged ? m_merged->count() : MergeCount(); }
    // The table and the weights of the adapter. Precondition: hasAdapter().
    const ParamTable& trainedTable() const noexcept { return m_table; }
    MasterReader& adapter() const { return *m_adapter; }

private:
    MasterReader& base() const { return m_nf4 ? *m_nf4 : *m_files; }
    Status openAdapter(const ModelPlace& place, bool original);

    ModelConfig m_config;
    ParamTable m_table; // with an adapter its own, else that of the model
    std::unique_ptr<MasterReader> m_files;
    std::unique_ptr<MasterReader>
        m_nf4; // what they stand for in NF4; null: they are merged as read
    std::unique_ptr<MasterReader> m_adapter;
    std::optional<MergedModel> m_merged;
};

} // namespace mr
