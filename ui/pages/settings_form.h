// SettingsForm: the settings of a new run that have a look, the few that matter first, the others
// folded away.
//
// Reads and writes a RunSpec; fields that the model and data sections own keep their value.

#pragma once

#include "pages/settings_editors.h"
#include "widgets/card.h"

#include <millrace/planner.h>
#include <millrace/run_spec.h>

#include <QWidget>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

class QGridLayout;
class QLabel;
class QToolButton;

namespace mr::ui {

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
    struct Row {
        const SettingLook* look;
        QLabel* label;
        std::unique_ptr<SettingEditor> editor;
    };

    void addRows();
    std::unique_ptr<SettingEditor> makeEditor(const SettingLook& look);
    // The editor's widget, of the class that the kind of the setting has.
    template <typename Widget>
    Widget* editor(std::string_view key) const;
    static void placeNext(QGridLayout* grid, QWidget* label, QWidget* editor);
    std::vector<QWidget*> stops(const Row& row) const;
    void setFocusOrder(); // as the eye reads
    void connectEditors();
    void keepTheWheelFrom(QWidget* editors);
    void updateKeepBest();
    void showAdvanced(bool shown);
    void retranslateUi();

    Card* m_card;
    QToolButton* m_fold;
    QWidget* m_advanced;
    QGridLayout* m_simpleGrid;
    QGridLayout* m_advancedGrid;
    PolicyChoice* m_policies;
    std::vector<Row> m_rows; // in the order of SettingWords::looks()
    bool m_evaluated = true;
};

} // namespace mr::ui
