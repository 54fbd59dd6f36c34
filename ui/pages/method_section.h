// MethodSection: what a new run trains, with what each choice would need here.
//
// Threads  GUI.

#pragma once

#include "pages/labelled_setting.h"
#include "text/method_words.h"
#include "widgets/card.h"

#include <millrace/library.h>
#include <millrace/planner.h>

#include <QWidget>

#include <array>
#include <optional>
#include <string>
#include <vector>

class QLineEdit;
class QRadioButton;

namespace mr::ui {

class AdapterForm;
class MessageLabel;

class MethodSection final : public QWidget
{
    Q_OBJECT

public:
    explicit MethodSection(QWidget* parent = nullptr);

    // Settings of a method that is not chosen are not written.
    void writeTo(RunSpec& spec) const;
    void readFrom(const RunSpec& spec);
    // The question for planAllMethods(): `spec`, and the adapter as it is set even where another
    // method is chosen.
    RunSpec withAdapter(RunSpec spec) const;

    Method method() const;
    // The layers of this model are named as an example; none: no model is chosen.
    void setModel(const std::optional<ModelInfo>& model);
    // The first plan of each method counts. Empty: nothing is known.
    void setPlans(const std::vector<PlanReport>& plans);
    // Why no run can start; empty if one can.
    QString problem() const;

    QRadioButton* button(Method method) const { return option(method).button; }
    MessageLabel* need(Method method) const { return option(method).need; }
    AdapterForm* adapter() const { return m_adapter; }
    QLineEdit* layers() const;

signals:
    void changed();

protected:
    void changeEvent(QEvent* event) override;

private:
    struct Option {
        QRadioButton* button = nullptr;
        QLabel* help = nullptr;
        MessageLabel* need = nullptr;
    };

    Option makeOption(Method method);
    void addIndented(QWidget* widget);
    QWidget* addForm(const SettingLook& look, std::optional<LabelledSetting>& setting);
    const Option& option(Method method) const;
    void showChosen();
    std::optional<Method> advised() const;
    void showPlans();
    void retranslateUi();

    Card* m_card;
    std::array<Option, 5> m_options;
    AdapterForm* m_adapter = nullptr;
    QWidget* m_layersForm = nullptr;
    std::optional<LabelledSetting> m_layers;
    QWidget* m_turnsForm = nullptr;
    std::optional<LabelledSetting> m_turnSteps;
    std::vector<PlanReport> m_plans;
    std::int64_t m_blocks = 0; // of the model; 0: not known
};

} // namespace mr::ui
