// The words of SettingsForm in the language of the window.

#include "pages/policy_choice.h"
#include "pages/settings_form.h"
#include "widgets/byte_spin_box.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>
#include <QToolButton>

namespace mr::ui {

void SettingsForm::retranslateUi()
{
    m_card->setTitle(tr("Settings"));
    m_fold->setText(tr("More settings"));
    for (const Field& field : m_fields) {
        field.label->setText(tr(field.name));
        field.label->setToolTip(tr(field.help));
        field.editor->setToolTip(tr(field.help));
        field.editor->setAccessibleName(tr(field.name));
    }
    m_epochs->setAccessibleName(tr("Epochs"));
    m_steps->setAccessibleName(tr("Steps"));
    m_lengthUnit->setAccessibleName(tr("Epochs or steps"));
    m_lengthUnit->setItemText(kByEpochs, tr("epochs"));
    m_lengthUnit->setItemText(kBySteps, tr("steps"));
    retranslateChoices();
    retranslateUnits();
}

void SettingsForm::retranslateChoices()
{
    m_precision->setItemText(0, tr("Automatic"));
    m_precision->setItemText(1, QStringLiteral("bf16"));
    m_precision->setItemText(2, QStringLiteral("fp32"));
    m_recompute->setItemText(0, tr("Automatic"));
    m_recompute->setItemText(1, tr("Nothing"));
    m_recompute->setItemText(2, tr("Each block"));
    m_allow->setItemText(0, tr("Exact policies"));
    m_allow->setItemText(1, tr("Also those that lag"));
    m_policies->retranslate();
    m_device->setItemText(0, tr("Automatic"));
    m_device->setItemText(1, tr("Processor (CPU)"));
    m_device->setItemText(2, tr("GPU (CUDA)"));
    m_schedule->setItemText(0, tr("Cosine to zero"));
    m_schedule->setItemText(1, tr("Linear to zero"));
    m_schedule->setItemText(2, tr("Constant"));
    m_keepBest->setText(tr("Keep the best by evaluation loss"));
    m_learningRate->setPlaceholderText(tr("Automatic (2e-5)"));
}

void SettingsForm::retranslateUnits()
{
    const QString automatic = tr("Automatic");
    m_seqLen->setSpecialValueText(automatic);
    m_seqLen->setSuffix(tr(" token(s)", nullptr, m_seqLen->value()));
    m_microBatch->setSuffix(tr(" sequence(s)", nullptr, m_microBatch->value()));
    m_accumulate->setSuffix(tr(" micro-batch(es)", nullptr, m_accumulate->value()));
    m_deviceMemory->setSpecialValueText(automatic);
    m_hostMemory->setSpecialValueText(automatic);
    m_threads->setSpecialValueText(automatic);
    m_warmup->setSpecialValueText(tr("Automatic (3 % of the steps)"));
    m_warmup->setSuffix(tr(" step(s)", nullptr, m_warmup->value()));
    m_clip->setSpecialValueText(tr("Off"));
    m_evalEvery->setSpecialValueText(tr("Automatic (ten times a run)"));
    m_evalEvery->setSuffix(tr(" step(s)", nullptr, m_evalEvery->value()));
    m_checkpointEvery->setSpecialValueText(tr("Not by steps"));
    m_checkpointEvery->setSuffix(tr(" step(s)", nullptr, m_checkpointEvery->value()));
    m_checkpointMinutes->setSpecialValueText(tr("Not by time"));
    m_checkpointMinutes->setSuffix(tr(" minute(s)", nullptr, m_checkpointMinutes->value()));
    m_link->setSpecialValueText(tr("Off"));
    m_link->setSuffix(QStringLiteral(" GB/s"));
}

} // namespace mr::ui
