// SettingsForm: every number of a new run, the few that matter first, the others folded away.
//
// Reads and writes a RunSpec; what the model and data sections own is left as it is.

#pragma once

#include "widgets/card.h"

#include <millrace/planner.h>
#include <millrace/run_spec.h>

#include <QWidget>

#include <string>
#include <vector>

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QGridLayout;
class QLabel;
class QLineEdit;
class QSpinBox;
class QToolButton;

namespace mr::ui {

class ByteSpinBox;
class PolicyChoice;

class SettingsForm final : public QWidget
{
    Q_OBJECT

public:
    explicit SettingsForm(const std::vector<PolicyName>& policies, QWidget* parent = nullptr);

    void writeTo(RunSpec& spec) const;
    void readFrom(const RunSpec& spec);
    std::int64_t seqLen() const; // 0: chosen by the program
    std::int64_t keepCheckpoints() const;
    // Without, no evaluation can be the best.
    void setEvaluated(bool on);
    std::string secondPolicy() const; // to compare with; empty: none
    PolicyChoice* policies() const { return m_policies; }
    // Below the settings that are folded away; the form owns it from now on.
    void addAdvanced(QWidget* section);

signals:
    void changed();

protected:
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    enum LengthUnit { kByEpochs, kBySteps }; // items of a box
    struct Field {
        const char* name; // untranslated, with the mnemonic
        const char* help;
        QLabel* label;
        QWidget* editor;
    };

    void makeEditors();
    static void placeNext(QGridLayout* grid, QWidget* label, QWidget* editor);
    void addField(QGridLayout* grid, const char* name, const char* help, QWidget* editor);
    void fillSimple(QGridLayout* grid);
    void fillAdvanced(QGridLayout* grid);
    void setFocusOrder(); // as the eye reads
    void connectEditors();
    void keepTheWheelFrom(QWidget* editors);
    void setLengthUnit();
    void updateKeepBest();
    void showAdvanced(bool shown);
    void retranslateUi();
    void retranslateChoices();
    void retranslateUnits();

    Card* m_card;
    QToolButton* m_fold;
    QWidget* m_advanced;
    PolicyChoice* m_policies;
    std::vector<Field> m_fields;

    QWidget* m_length;
    QComboBox* m_lengthUnit;
    QDoubleSpinBox* m_epochs;
    QSpinBox* m_steps;
    QSpinBox* m_seqLen;
    QSpinBox* m_microBatch;
    QSpinBox* m_accumulate;
    QLineEdit* m_learningRate;
    QComboBox* m_precision;
    QComboBox* m_recompute;
    QComboBox* m_allow;
    QComboBox* m_device;
    ByteSpinBox* m_deviceMemory;
    QSpinBox* m_threads;

    QComboBox* m_schedule;
    QSpinBox* m_warmup;
    QDoubleSpinBox* m_weightDecay;
    QDoubleSpinBox* m_beta1;
    QDoubleSpinBox* m_beta2;
    QDoubleSpinBox* m_clip;
    QSpinBox* m_seed;
    QSpinBox* m_checkpointEvery;
    QSpinBox* m_checkpointMinutes;
    QSpinBox* m_evalEvery;
    QSpinBox* m_keep;
    QCheckBox* m_keepBest;
    bool m_evaluated = true;
    ByteSpinBox* m_hostMemory;
    QDoubleSpinBox* m_link;
};

} // namespace mr::ui
