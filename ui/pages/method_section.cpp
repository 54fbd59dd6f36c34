#include "pages/method_section.h"

#include "pages/adapter_form.h"
#include "widgets/message_label.h"

#include <QEvent>
#include <QLabel>
#include <QLineEdit>
#include <QRadioButton>
#include <QSignalBlocker>
#include <QStyle>
#include <QVBoxLayout>

#include <algorithm>

namespace mr::ui {

namespace {

constexpr std::array kMethods = {
    Method::Everything, Method::Blocks, Method::Adapter, Method::Nf4Adapter, Method::Layers};
constexpr int kOptionGap = 10;  // between one choice and the next
constexpr int kShownBlocks = 4; // of the example: the last ones

const PlanReport* planOf(const std::vector<PlanReport>& plans, Method method)
{
    const auto found = std::ranges::find_if(plans,
        [method](const PlanReport& plan) { return plan.method == MethodWords::word(method); });
    return found == plans.end() ? nullptr : &*found;
}

} // namespace

// Made from top to bottom, which is the order of the keyboard.
MethodSection::MethodSection(QWidget* parent)
    : QWidget(parent)
    , m_card(new Card(this))
{
    m_card->body()->setSpacing(4);
    for (const Method method : kMethods) {
        m_options[static_cast<std::size_t>(method)] = makeOption(method);
        if (method == Method::Nf4Adapter) { // it is that of both
            m_adapter = new AdapterForm(m_card);
            addIndented(m_adapter);
        } else if (method == Method::Layers) {
            m_layersForm = addForm(SettingWords::layersLook(), m_layers);
        } else if (method == Method::Blocks) {
            m_turnsForm = addForm(SettingWords::turnsLook(), m_turnSteps);
        }
    }
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_card);
    connect(m_adapter, &AdapterForm::changed, this, &MethodSection::changed);
    button(Method::Everything)->setChecked(true);
    showChosen();
    retranslateUi();
}

MethodSection::Option MethodSection::makeOption(Method method)
{
    Option made{new QRadioButton(m_card), makeMutedLabel(m_card), new MessageLabel(m_card)};
    made.button->setObjectName(
        QStringLiteral("method-") + QLatin1String(MethodWords::word(method)));
    if (method != kMethods.front())
        m_card->body()->addSpacing(kOptionGap);
    m_card->body()->addWidget(made.button);
    addIndented(made.help);
    addIndented(made.need);
    connect(made.button, &QRadioButton::toggled, this, [this](bool on) {
        showChosen();
        if (on) // the one that was left has told already
            emit changed();
    });
    return made;
}

void MethodSection::addIndented(QWidget* widget)
{
    const int indent = style()->pixelMetric(QStyle::PM_ExclusiveIndicatorWidth) +
                       style()->pixelMetric(QStyle::PM_RadioButtonLabelSpacing);
    widget->setContentsMargins(indent, 0, 0, 0);
    m_card->body()->addWidget(widget);
}

// The one setting of a method, below it.
QWidget* MethodSection::addForm(const SettingLook& look, std::optional<LabelledSetting>& setting)
{
    auto* form = new QWidget(m_card);
    setting = LabelledSetting::make(
        look, SettingEditor::make(*findSpecField(look.key), look, form), form);
    auto* layout = new QVBoxLayout(form);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(4);
    layout->addSpacing(4);
    layout->addWidget(setting->label);
    layout->addWidget(setting->editor->widget());
    onEdited(setting->editor->widget(), this, [this] { emit changed(); });
    addIndented(form);
    return form;
}

const MethodSection::Option& MethodSection::option(Method method) const
{
    return m_options.at(static_cast<std::size_t>(method));
}

QLineEdit* MethodSection::layers() const
{
    return qobject_cast<QLineEdit*>(m_layers->editor->widget());
}

Method MethodSection::method() const
{
    const auto chosen = std::ranges::find_if(
        kMethods, [this](Method method) { return button(method)->isChecked(); });
    return chosen == kMethods.end() ? Method::Everything : *chosen;
}

void MethodSection::writeTo(RunSpec& spec) const
{
    const Method chosen = method();
    spec.method = isAdapter(chosen) ? MethodWords::word(chosen) : "full";
    if (isAdapter(chosen))
        m_adapter->writeTo(spec);
    if (chosen == Method::Layers)
        m_layers->editor->write(spec);
    spec.train = chosen == Method::Blocks ? TrainOrder::Blocks : TrainOrder::Together;
    if (chosen == Method::Blocks)
        m_turnSteps->editor->write(spec);
}

RunSpec MethodSection::withAdapter(RunSpec spec) const
{
    const std::string layers = spec.trainLayers;
    if (isAdapter(method()))
        return spec;
    m_adapter->writeTo(spec);
    spec.trainLayers = layers;
    return spec;
}

void MethodSection::readFrom(const RunSpec& spec)
{
    const QSignalBlocker quiet(this);
    const bool isAdapter = isAdapterRun(spec);
    m_adapter->readFrom(spec);
    const bool inTurns = trainsInTurns(spec);
    m_layers->editor->read(isAdapter || inTurns ? RunSpec() : spec);
    m_turnSteps->editor->read(spec);
    const Method rest = inTurns                    ? Method::Blocks
                        : spec.trainLayers.empty() ? Method::Everything
                                                   : Method::Layers;
    const Method adapter = spec.method == "qlora" ? Method::Nf4Adapter : Method::Adapter;
    button(isAdapter ? adapter : rest)->setChecked(true);
}

void MethodSection::setModel(const std::optional<ModelInfo>& model)
{
    m_blocks = model ? model->layers : 0;
    QString example;
    if (m_blocks > 0)
        example = tr("For example %1-%2,head: the model has embedding, blocks 0 to %2 and head")
                      .arg(std::max<std::int64_t>(0, m_blocks - kShownBlocks))
                      .arg(m_blocks - 1);
    layers()->setPlaceholderText(example);
}

void MethodSection::setPlans(const std::vector<PlanReport>& plans)
{
    m_plans = plans;
    showPlans();
}

QString MethodSection::problem() const
{
    if (method() == Method::Layers && layers()->text().trimmed().isEmpty())
        return tr("Name the layers to train, or choose to train everything.");
    return {};
}

void MethodSection::showChosen()
{
    m_adapter->setVisible(isAdapter(method()));
    m_layersForm->setVisible(method() == Method::Layers);
    m_turnsForm->setVisible(method() == Method::Blocks);
}

// The first adapter that fits, where the whole model does not.
std::optional<Method> MethodSection::advised() const
{
    const auto fits = [this](Method method) {
        const PlanReport* plan = planOf(m_plans, method);
        return plan != nullptr && plan->fits;
    };
    if (planOf(m_plans, Method::Everything) == nullptr || fits(Method::Everything))
        return {};
    for (const Method method : {Method::Adapter, Method::Nf4Adapter})
        if (fits(method))
            return method;
    return {};
}

void MethodSection::showPlans()
{
    const std::optional<Method> best = advised();
    for (const Method method : kMethods) {
        const Option& shown = option(method);
        const QString name = MethodWords::name(method);
        shown.button->setText(method == best ? tr("%1, recommended", "a method").arg(name) : name);
        const PlanReport* plan = planOf(m_plans, method);
        if (plan == nullptr)
            shown.need->clear();
        else
            shown.need->show(plan->fits ? MessageLabel::Kind::Good : MessageLabel::Kind::Warning,
                MethodWords::need(*plan));
        shown.button->setAccessibleDescription(
            (MethodWords::help(method) + QLatin1Char(' ') + shown.need->text()).trimmed());
    }
}

void MethodSection::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        retranslateUi();
}

void MethodSection::retranslateUi()
{
    m_card->setTitle(tr("What to train"));
    for (const Method method : kMethods)
        option(method).help->setText(MethodWords::help(method));
    m_layers->retranslate();
    m_turnSteps->retranslate();
    showPlans();
}

} // namespace mr::ui
