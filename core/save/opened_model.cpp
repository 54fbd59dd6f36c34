#include "core/save/opened_model.h"

#include "core/model/packed_group.h"
#include "core/model/peft_folder.h"

#include <string>
#include <utility>

namespace mr {
namespace {

Status refuseModel(std::string message)
{
    return Status::error(ErrorKind::InvalidArgument, std::move(message));
}

} // namespace

Status OpenedModel::open(const ModelPlace& place, bool original)
{
    MR_ASSIGN(m_config, readModelConfig(place.model));
    if (!place.adapter.empty())
        return openAdapter(place, original);
    if (original)
        return refuseModel(place.model + ": has no adapter; leave base out");
    m_table = buildParamTable(m_config);
    MR_ASSIGN(m_files, openWeights(place.model, m_config, m_table));
    return {};
}

Status OpenedModel::openAdapter(const ModelPlace& place, bool original)
{
    MR_ASSIGN(const PeftConfig peft, readPeftConfig(place.adapter));
    if (original && !peft.settings.nf4Base)
        return refuseModel(
            place.adapter + ": was trained beside the original weights; leave base out");
    if (original && m_config.isNf4)
        return refuseModel(place.model +
                           ": holds NF4 and not the weights before they were quantised; "
                           "leave base out");
    auto table = adapterTable(buildParamTable(m_config), peft.settings);
    if (!table.ok())
        return refuseModel(
            place.adapter + ": does not fit " + place.model + ": " + table.status().message());
    m_table = std::move(table).value();
    const ParamTable& model = wholeModel(m_table);
    MR_ASSIGN(m_files, openWeights(place.model, m_config, model));
    if (!peft.baseHash.empty()) {
        MR_ASSIGN(const std::string hash, weightsHash(model, *m_files));
        MR_TRY(checkBase(place.adapter, peft, place.model, hash));
    }
    if (peft.settings.nf4Base && !original)
        m_nf4 = nf4Model(model, *m_files);
    MR_ASSIGN(m_adapter, openPeftWeights(place.adapter, m_table));
    m_merged.emplace(m_table, base(), *m_adapter);
    return {};
}

} // namespace mr
