#include "pages/settings_form.h"

#include "pages/length_editor.h"
#include "pages/policy_choice.h"
#include "text/svg_icon.h"
#include "widgets/wheel_guard.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QEvent>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QToolButton>
#include <QVBoxLayout>

#include <utility>

namespace mr::ui {

namespace {

class PolicyEditor final : public SettingEditor
{
public:
    explicit PolicyEditor(PolicyChoice& choice)
        : m_choice(choice)
    {
    }

    QWidget* widget() const override { return m_choice.first(); }
    void read(const RunSpec& spec) override { m_choice.setPolicy(spec.policy); }
    void write(RunSpec& spec) const override { spec.policy = m_choice.policy(); }
    void retranslate() override { m_choice.retranslate(); }

private:
    PolicyChoice& m_choice;
};

} // namespace

SettingsForm::SettingsForm(const std::vector<PolicyName>& policies, QWidget* parent)
    : QWidget(parent)
    , m_card(new Card(this))
    , m_fold(new QToolButton(this))
    , m_advanced(new QWidget(this))
    , m_simpleGrid(new QGridLayout)
    , m_advancedGrid(new QGridLayout(m_advanced))
    , m_policies(new PolicyChoice(policies, this))
    , m_wheel(new WheelGuard(this))
{
    addRows();
    m_advancedGrid->setContentsMargins(0, 0, 0, 0);
    m_fold->setObjectName(QStringLiteral("advanced"));
    m_fold->setCheckable(true);
    m_fold->setAutoRaise(true);
    m_fold->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_fold->setFocusPolicy(Qt::StrongFocus);
    m_card->body()->addLayout(m_simpleGrid);
    m_card->body()->addWidget(m_fold, 0, Qt::AlignLeft);
    m_card->body()->addWidget(m_advanced);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_card);

    setFocusOrder();
    connectEditors();
    showAdvanced(false);
    retranslateUi();
}

void SettingsForm::addRows()
{
    for (const SettingLook& look : SettingWords::looks()) {
        QGridLayout* grid = look.isAdvanced ? m_advancedGrid : m_simpleGrid;
        LabelledSetting row = LabelledSetting::make(look, makeEditor(look), this);
        placeInPairs(grid, row.label, row.editor->widget());
        if (row.editor->widget() == m_policies->first())
            placeInPairs(grid, m_policies->compare(), m_policies->second());
        m_rows.push_back(std::move(row));
    }
}

std::unique_ptr<SettingEditor> SettingsForm::makeEditor(const SettingLook& look)
{
    const std::string_view key = look.key;
    if (key == "steps")
        return std::make_unique<LengthEditor>(this);
    if (key == "policy")
        return std::make_unique<PolicyEditor>(*m_policies);
    return SettingEditor::make(*findSpecField(key), look, this);
}

template <typename Widget>
Widget* SettingsForm::editor(std::string_view key) const
{
    for (const LabelledSetting& row : m_rows)
        if (row.look->key == key)
            return qobject_cast<Widget*>(row.editor->widget());
    return nullptr;
}

std::vector<QWidget*> SettingsForm::stops(const LabelledSetting& row) const
{
    if (const auto* length = dynamic_cast<const LengthEditor*>(row.editor.get()))
        return length->parts();
    if (row.editor->widget() == m_policies->first())
        return {m_policies->first(), m_policies->compare(), m_policies->second()};
    return {row.editor->widget()};
}

void SettingsForm::setFocusOrder()
{
    QWidget* before = nullptr;
    const auto next = [&before](QWidget* widget) {
        if (before)
            setTabOrder(before, widget);
        before = widget;
    };
    bool foldPassed = false;
    for (const LabelledSetting& row : m_rows) {
        if (row.look->isAdvanced && !std::exchange(foldPassed, true))
            next(m_fold);
        for (QWidget* stop : stops(row))
            next(stop);
    }
}

void SettingsForm::connectEditors()
{
    for (const LabelledSetting& row : m_rows)
        for (QWidget* stop : stops(row))
            if (stop != m_policies->compare()) // after it has set the second box
                onEdited(stop, this, [this] { emit changed(); });
    connect(editor<QSpinBox>("eval_every"), &QSpinBox::valueChanged, this,
        &SettingsForm::updateKeepBest);
    connect(m_policies, &PolicyChoice::compareChanged, this, &SettingsForm::changed);
    connect(m_fold, &QToolButton::toggled, this, &SettingsForm::showAdvanced);
    m_wheel->guard(this);
}

void SettingsForm::addAdvanced(QWidget* section)
{
    m_advancedGrid->addWidget(section, m_advancedGrid->rowCount(), 0, 1, 2);
    m_wheel->guard(section);
}

void SettingsForm::setAdapter(bool on)
{
    for (const LabelledSetting& row : m_rows)
        row.editor->setAdapter(on);
}

void SettingsForm::setEvaluated(bool on)
{
    m_evaluated = on;
    updateKeepBest();
}

void SettingsForm::updateKeepBest()
{
    const bool evaluates = m_evaluated && editor<QSpinBox>("eval_every")->value() != 0;
    editor<QCheckBox>("keep_best")->setEnabled(evaluates);
}

void SettingsForm::showAdvanced(bool shown)
{
    m_advanced->setVisible(shown);
    m_fold->setIcon(
        svgIcon(shown ? QStringLiteral("chevron-down") : QStringLiteral("chevron-right")));
}

std::int64_t SettingsForm::seqLen() const
{
    return editor<QSpinBox>("seq_len")->value();
}

std::int64_t SettingsForm::keepCheckpoints() const
{
    return editor<QSpinBox>("keep_checkpoints")->value();
}

std::string SettingsForm::secondPolicy() const
{
    return m_policies->secondPolicy();
}

void SettingsForm::writeTo(RunSpec& spec) const
{
    for (const LabelledSetting& row : m_rows)
        row.editor->write(spec);
}

void SettingsForm::readFrom(const RunSpec& spec)
{
    const QSignalBlocker quiet(this); // one changed() at the end
    for (const LabelledSetting& row : m_rows)
        row.editor->read(spec);
}

void SettingsForm::retranslateUi()
{
    m_card->setTitle(tr("Settings"));
    m_fold->setText(tr("More settings"));
    for (const LabelledSetting& row : m_rows)
        row.retranslate();
}

void SettingsForm::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        retranslateUi();
}

} // namespace mr::ui
