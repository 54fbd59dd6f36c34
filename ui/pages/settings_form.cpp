#include "pages/settings_form.h"

#include "pages/policy_choice.h"
#include "pages/settings_editors.h"
#include "text/svg_icon.h"
#include "widgets/byte_spin_box.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QDoubleValidator>
#include <QEvent>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QToolButton>
#include <QVBoxLayout>

#include <limits>

namespace mr::ui {

namespace {

constexpr int kMillion = 1'000'000;
constexpr int kMostMinutes = 30 * 24 * 60;
constexpr int kExactOnly = 0;
constexpr int kMayLag = 1;

} // namespace

SettingsForm::SettingsForm(const std::vector<PolicyName>& policies, QWidget* parent)
    : QWidget(parent)
    , m_card(new Card(this))
    , m_fold(new QToolButton(this))
    , m_advanced(new QWidget(this))
    , m_policies(new PolicyChoice(policies, this))
{
    makeEditors();

    auto* simple = new QGridLayout;
    fillSimple(simple);
    auto* advanced = new QGridLayout(m_advanced);
    advanced->setContentsMargins(0, 0, 0, 0);
    fillAdvanced(advanced);
    m_fold->setObjectName(QStringLiteral("advanced"));
    m_fold->setCheckable(true);
    m_fold->setAutoRaise(true);
    m_fold->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_fold->setFocusPolicy(Qt::StrongFocus);
    m_card->body()->addLayout(simple);
    m_card->body()->addWidget(m_fold, 0, Qt::AlignLeft);
    m_card->body()->addWidget(m_advanced);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_card);

    setFocusOrder();
    connectEditors();
    showAdvanced(false);
    retranslateUi();
    setLengthUnit();
}

void SettingsForm::makeEditors()
{
    m_length = new QWidget(this);
    m_epochs = makeNumber(m_length, 10000.0, 2, 1.0, 1.0);
    m_epochs->setMinimum(0.01);
    m_steps = makeInteger(m_length, 1, 100 * kMillion, 100);
    m_lengthUnit = new QComboBox(m_length);
    m_lengthUnit->addItem(QString());
    m_lengthUnit->addItem(QString());
    auto* length = new QHBoxLayout(m_length);
    length->setContentsMargins(0, 0, 0, 0);
    length->addWidget(m_epochs, 1);
    length->addWidget(m_steps, 1);
    length->addWidget(m_lengthUnit);
    m_length->setFocusProxy(m_epochs);

    m_seqLen = makeInteger(this, 0, kMillion, 0);
    m_microBatch = makeInteger(this, 1, 4096, 1);
    m_accumulate = makeInteger(this, 1, 65536, 8);
    m_learningRate = new QLineEdit(this);
    auto* validator = new QDoubleValidator(0.0, 100.0, 12, m_learningRate);
    validator->setLocale(QLocale::c()); // "2e-5" reads the same everywhere
    m_learningRate->setValidator(validator);
    m_precision = new QComboBox(this);
    addChoices(m_precision, {PrecisionChoice::Auto, PrecisionChoice::BF16, PrecisionChoice::F32});
    m_recompute = new QComboBox(this);
    addChoices(m_recompute, {RecomputeChoice::Auto, RecomputeChoice::None, RecomputeChoice::Block});
    m_allow = new QComboBox(this);
    m_allow->setObjectName(QStringLiteral("allow"));
    m_allow->addItem({}, kExactOnly);
    m_allow->addItem({}, kMayLag);
    m_device = new QComboBox(this);
    addChoices(m_device, {DeviceChoice::Auto, DeviceChoice::Cpu, DeviceChoice::Cuda});
    m_deviceMemory = new ByteSpinBox(this);
    m_threads = makeInteger(this, 0, 1024, 0);

    m_schedule = new QComboBox(this);
    addChoices(m_schedule, {ScheduleKind::Cosine, ScheduleKind::Linear, ScheduleKind::Constant});
    m_warmup = makeInteger(this, -1, 100 * kMillion, -1);
    m_weightDecay = makeNumber(this, 10.0, 4, 0.01, 0.01);
    m_beta1 = makeNumber(this, 0.99999, 5, 0.01, 0.9);
    m_beta2 = makeNumber(this, 0.99999, 5, 0.001, 0.999);
    m_clip = makeNumber(this, 1000.0, 3, 0.1, 1.0);
    m_seed = makeInteger(this, 0, std::numeric_limits<int>::max(), 1);
    m_seed->setGroupSeparatorShown(false);
    m_checkpointEvery = makeInteger(this, 0, 100 * kMillion, 0);
    m_checkpointMinutes = makeInteger(this, 0, kMostMinutes, 15);
    m_checkpointMinutes->setObjectName(QStringLiteral("checkpointMinutes"));
    m_evalEvery = makeInteger(this, -1, 100 * kMillion, -1);
    m_keep = makeInteger(this, 1, 1000, 2);
    m_keepBest = new QCheckBox(this);
    m_keepBest->setObjectName(QStringLiteral("keepBest"));
    m_hostMemory = new ByteSpinBox(this);
    m_link = makeNumber(this, 10000.0, 2, 1.0, 0.0);
}

void SettingsForm::placeNext(QGridLayout* grid, QWidget* label, QWidget* editor)
{
    // Two fields a row, each a label above its editor.
    const int index = static_cast<int>(grid->count()) / 2;
    const int row = index / 2 * 2;
    const int column = index % 2;
    grid->addWidget(label, row, column);
    grid->addWidget(editor, row + 1, column);
    grid->setColumnStretch(column, 1);
    grid->setHorizontalSpacing(16);
    grid->setVerticalSpacing(4);
}

void SettingsForm::addField(QGridLayout* grid, const char* name, const char* help, QWidget* editor)
{
    auto* label = new QLabel(this);
    label->setBuddy(editor);
    placeNext(grid, label, editor);
    m_fields.push_back({name, help, label, editor});
}

void SettingsForm::fillSimple(QGridLayout* grid)
{
    const auto add = [&](const char* name, const char* help, QWidget* editor) {
        addField(grid, name, help, editor);
    };
    add(QT_TR_NOOP("Train for"), QT_TR_NOOP("Passes over the dataset, or optimizer steps."),
        m_length);
    add(QT_TR_NOOP("Learning rate"), QT_TR_NOOP("Peak of the schedule, for example 2e-5."),
        m_learningRate);
    add(QT_TR_NOOP("Sequence length"), QT_TR_NOOP("Tokens of one sequence; longer rows are cut."),
        m_seqLen);
    add(QT_TR_NOOP("Micro-batch"), QT_TR_NOOP("Sequences that are on the device at the same time."),
        m_microBatch);
    add(QT_TR_NOOP("Accumulate"),
        QT_TR_NOOP("Micro-batches whose gradients are summed into one optimizer step."),
        m_accumulate);
    add(QT_TR_NOOP("Precision"),
        QT_TR_NOOP("bf16: 2 bytes a number in the model's products. fp32: 4 bytes."), m_precision);
    add(QT_TR_NOOP("Recompute"),
        QT_TR_NOOP("Computes activations again in the backward pass instead of keeping them."),
        m_recompute);
    add(QT_TR_NOOP("Device"), QT_TR_NOOP("What the model is computed on."), m_device);
    add(QT_TR_NOOP("Offload policy"),
        QT_TR_NOOP("Where weights and optimizer state live, and who updates them."),
        m_policies->first());
    placeNext(grid, m_policies->compare(), m_policies->second());
    add(QT_TR_NOOP("Automatic may take"),
        QT_TR_NOOP("Exact policies give the bits of training on the device alone. Others hide the "
                   "host's work by letting a part of each update come some steps late."),
        m_allow);
    add(QT_TR_NOOP("Device memory"), QT_TR_NOOP("The most bytes the run may hold on the device."),
        m_deviceMemory);
    add(QT_TR_NOOP("Threads"), QT_TR_NOOP("Processor threads of the run."), m_threads);
}

void SettingsForm::fillAdvanced(QGridLayout* grid)
{
    const auto add = [&](const char* name, const char* help, QWidget* editor) {
        addField(grid, name, help, editor);
    };
    add(QT_TR_NOOP("Schedule"), QT_TR_NOOP("How the learning rate falls after the warm-up."),
        m_schedule);
    add(QT_TR_NOOP("Warm-up"), QT_TR_NOOP("Steps in which the learning rate rises."), m_warmup);
    add(QT_TR_NOOP("Weight decay"), QT_TR_NOOP("Of matrices; norms and biases have none."),
        m_weightDecay);
    add(QT_TR_NOOP("Gradient clipping"),
        QT_TR_NOOP("The largest norm of the whole gradient that is applied."), m_clip);
    add(QT_TR_NOOP("Adam beta 1"), QT_TR_NOOP("Memory of the first moment."), m_beta1);
    add(QT_TR_NOOP("Adam beta 2"), QT_TR_NOOP("Memory of the second moment."), m_beta2);
    add(QT_TR_NOOP("Seed"), QT_TR_NOOP("The same seed and plan give the same bits."), m_seed);
    add(QT_TR_NOOP("Evaluate every"), QT_TR_NOOP("Steps between evaluations."), m_evalEvery);
    add(QT_TR_NOOP("Checkpoint every"), QT_TR_NOOP("Steps between checkpoints."),
        m_checkpointEvery);
    add(QT_TR_NOOP("Checkpoint after"),
        QT_TR_NOOP("Writes a checkpoint when this much time has passed since the last one."),
        m_checkpointMinutes);
    add(QT_TR_NOOP("Checkpoints kept"), QT_TR_NOOP("Older ones are deleted."), m_keep);
    add(QT_TR_NOOP("Best checkpoint"),
        QT_TR_NOOP("An evaluation that is the best so far saves a checkpoint of its step. Without, "
                   "the best of those that were saved anyway is kept."),
        m_keepBest);
    add(QT_TR_NOOP("Host memory"), QT_TR_NOOP("The most pinned memory the run may hold."),
        m_hostMemory);
    add(QT_TR_NOOP("Simulated link"),
        QT_TR_NOOP("Slows copies between host and device down, each way, to study stalls without "
                   "a GPU. Results are labelled as simulated."),
        m_link);
}

void SettingsForm::setFocusOrder()
{
    QWidget* before = nullptr;
    const auto next = [&before](QWidget* widget) {
        if (before)
            setTabOrder(before, widget);
        before = widget;
    };
    for (const Field& field : m_fields) {
        if (field.editor == m_schedule)
            next(m_fold);
        if (field.editor != m_length) {
            next(field.editor);
            if (field.editor == m_policies->first()) {
                next(m_policies->compare());
                next(m_policies->second());
            }
            continue;
        }
        next(m_epochs);
        next(m_steps);
        next(m_lengthUnit);
    }
}

void SettingsForm::connectEditors()
{
    for (auto* box : findChildren<QSpinBox*>())
        connect(box, &QSpinBox::valueChanged, this, &SettingsForm::changed);
    // "1 step", "2 steps"
    for (auto* box : {m_seqLen, m_microBatch, m_accumulate, m_warmup, m_evalEvery,
             m_checkpointEvery, m_checkpointMinutes})
        connect(box, &QSpinBox::valueChanged, this, &SettingsForm::retranslateUnits);
    for (auto* box : findChildren<QDoubleSpinBox*>())
        connect(box, &QDoubleSpinBox::valueChanged, this, &SettingsForm::changed);
    for (auto* box : findChildren<QComboBox*>())
        connect(box, &QComboBox::currentIndexChanged, this, &SettingsForm::changed);
    connect(m_keepBest, &QCheckBox::toggled, this, &SettingsForm::changed);
    connect(m_evalEvery, &QSpinBox::valueChanged, this, &SettingsForm::updateKeepBest);
    connect(m_learningRate, &QLineEdit::editingFinished, this, &SettingsForm::changed);
    connect(m_policies, &PolicyChoice::compareChanged, this, &SettingsForm::changed);
    connect(m_lengthUnit, &QComboBox::currentIndexChanged, this, &SettingsForm::setLengthUnit);
    connect(m_fold, &QToolButton::toggled, this, &SettingsForm::showAdvanced);
    keepTheWheelFrom(this);
}

// The wheel scrolls the page; a number changes only where the user clicked first.
void SettingsForm::keepTheWheelFrom(QWidget* editors)
{
    for (auto* widget : editors->findChildren<QWidget*>()) {
        if (qobject_cast<QAbstractSpinBox*>(widget) || qobject_cast<QComboBox*>(widget)) {
            widget->setFocusPolicy(Qt::StrongFocus);
            widget->installEventFilter(this);
        }
    }
}

void SettingsForm::addAdvanced(QWidget* section)
{
    auto* grid = static_cast<QGridLayout*>(m_advanced->layout());
    grid->addWidget(section, grid->rowCount(), 0, 1, 2);
    keepTheWheelFrom(section);
}

void SettingsForm::setLengthUnit()
{
    const bool steps = m_lengthUnit->currentIndex() == kBySteps;
    m_steps->setVisible(steps);
    m_epochs->setVisible(!steps);
    m_length->setFocusProxy(steps ? static_cast<QWidget*>(m_steps) : m_epochs);
}

void SettingsForm::setEvaluated(bool on)
{
    m_evaluated = on;
    updateKeepBest();
}

void SettingsForm::updateKeepBest()
{
    m_keepBest->setEnabled(m_evaluated && m_evalEvery->value() != 0);
}

void SettingsForm::showAdvanced(bool shown)
{
    m_advanced->setVisible(shown);
    m_fold->setIcon(
        svgIcon(shown ? QStringLiteral("chevron-down") : QStringLiteral("chevron-right")));
}

std::int64_t SettingsForm::seqLen() const
{
    return m_seqLen->value();
}

std::int64_t SettingsForm::keepCheckpoints() const
{
    return m_keep->value();
}

std::string SettingsForm::secondPolicy() const
{
    return m_policies->secondPolicy();
}

void SettingsForm::writeTo(RunSpec& spec) const
{
    const bool bySteps = m_lengthUnit->currentIndex() == kBySteps;
    spec.steps = bySteps ? m_steps->value() : 0;
    spec.epochs = bySteps ? 1.0 : m_epochs->value();
    spec.seqLen = m_seqLen->value();
    spec.microBatch = m_microBatch->value();
    spec.accumulate = m_accumulate->value();
    spec.learningRate = QLocale::c().toDouble(m_learningRate->text());
    spec.precision = chosen<PrecisionChoice>(m_precision);
    spec.recompute = chosen<RecomputeChoice>(m_recompute);
    spec.policy = m_policies->policy();
    spec.allowStale = m_allow->currentData().toInt() == kMayLag;
    spec.device = chosen<DeviceChoice>(m_device);
    spec.deviceMemoryBytes = m_deviceMemory->bytes();
    spec.threads = m_threads->value();
    spec.schedule = chosen<ScheduleKind>(m_schedule);
    spec.warmupSteps = m_warmup->value();
    spec.weightDecay = m_weightDecay->value();
    spec.beta1 = m_beta1->value();
    spec.beta2 = m_beta2->value();
    spec.clipNorm = m_clip->value();
    spec.seed = static_cast<std::uint64_t>(m_seed->value());
    spec.checkpointEvery = m_checkpointEvery->value();
    spec.checkpointMinutes = m_checkpointMinutes->value();
    spec.evalEvery = m_evalEvery->value();
    spec.keepCheckpoints = m_keep->value();
    spec.keepBest = m_keepBest->isChecked();
    spec.hostMemoryBytes = m_hostMemory->bytes();
    spec.linkBytesPerSecond = m_link->value() * 1e9;
}

void SettingsForm::readFrom(const RunSpec& spec)
{
    const QSignalBlocker quiet(this); // one changed() at the end
    m_lengthUnit->setCurrentIndex(spec.steps > 0 ? kBySteps : kByEpochs);
    if (spec.steps > 0)
        m_steps->setValue(clamped(spec.steps));
    m_epochs->setValue(spec.epochs);
    m_seqLen->setValue(clamped(spec.seqLen));
    m_microBatch->setValue(clamped(spec.microBatch));
    m_accumulate->setValue(clamped(spec.accumulate));
    m_learningRate->setText(
        spec.learningRate > 0.0 ? QLocale::c().toString(spec.learningRate, 'g', 6) : QString());
    choose(m_precision, static_cast<int>(spec.precision));
    choose(m_recompute, static_cast<int>(spec.recompute));
    m_policies->setPolicy(spec.policy);
    choose(m_allow, spec.allowStale ? kMayLag : kExactOnly);
    choose(m_device, static_cast<int>(spec.device));
    m_deviceMemory->setBytes(spec.deviceMemoryBytes);
    m_threads->setValue(clamped(spec.threads));
    choose(m_schedule, static_cast<int>(spec.schedule));
    m_warmup->setValue(clamped(spec.warmupSteps));
    m_weightDecay->setValue(spec.weightDecay);
    m_beta1->setValue(spec.beta1);
    m_beta2->setValue(spec.beta2);
    m_clip->setValue(spec.clipNorm);
    m_seed->setValue(clamped(static_cast<std::int64_t>(spec.seed)));
    m_checkpointEvery->setValue(clamped(spec.checkpointEvery));
    m_checkpointMinutes->setValue(clamped(spec.checkpointMinutes));
    m_evalEvery->setValue(clamped(spec.evalEvery));
    m_keep->setValue(clamped(spec.keepCheckpoints));
    m_keepBest->setChecked(spec.keepBest);
    m_hostMemory->setBytes(spec.hostMemoryBytes);
    m_link->setValue(spec.linkBytesPerSecond / 1e9);
}

bool SettingsForm::eventFilter(QObject* watched, QEvent* event)
{
    const auto* widget = qobject_cast<QWidget*>(watched);
    if (event->type() == QEvent::Wheel && widget && !widget->hasFocus()) {
        event->ignore();
        return true;
    }
    return QWidget::eventFilter(watched, event);
}

void SettingsForm::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        retranslateUi();
}

} // namespace mr::ui
