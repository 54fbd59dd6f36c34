// SettingsForm: the settings of a new run that have a look, the few that matter first, the others
// folded away.
//
// Reads and writes a RunSpec; fields that the model and data sections own keep their value.

#pragma once

#include "pages/labelled_setting.h"
#include "widgets/card.h"

#include <millrace/planner.h>
#include <millrace/run_spec.h>

#include <QWidget>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

class QGridLayout;
class QToolButton;

namespace mr::ui {

class PolicyChoice;
class WheelGuard;

class SettingsForm final : public QWidget
{
    Q_OBJECT

public:
    explicit SettingsForm(const std::vector<PolicyName>& policies, QWidget* parent = nullptr);

    void writeTo(RunSpec& spec) const;
    void readFrom(const RunSpec& spec);
    std::int64_t seqLen() const; // 0: chosen by the program
    std::int64_t keepCheckpoints() const;
    // The texts of what the program chooses are true for the method.
    void setAdapter(bool on);
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

private:
    void addRows();
    std::unique_ptr<SettingEditor> makeEditor(const SettingLook& look);
    // The editor's widget, of the class that the kind of the setting has.
    template <typename Widget>
    Widget* editor(std::string_view key) const;
    std::vector<QWidget*> stops(const LabelledSetting& row) const;
    void setFocusOrder(); // as the eye reads
    void connectEditors();
    void updateKeepBest();
    void showAdvanced(bool shown);
    void retranslateUi();

    Card* m_card;
    QToolButton* m_fold;
    QWidget* m_advanced;
    QGridLayout* m_simpleGrid;
    QGridLayout* m_advancedGrid;
    PolicyChoice* m_policies;
    WheelGuard* m_wheel;
    std::vector<LabelledSetting> m_rows; // in the order of SettingWords::looks()
    bool m_evaluated = true;
};

} // namespace mr::ui
