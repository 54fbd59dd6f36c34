#include "pages/new_run_page.h"

#include "pages/dataset_section.h"
#include "pages/method_section.h"
#include "pages/model_section.h"
#include "pages/policy_choice.h"
#include "pages/scratch_section.h"
#include "pages/settings_form.h"
#include "text/svg_icon.h"
#include "widgets/card.h"
#include "widgets/message_label.h"
#include "widgets/path_edit.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QEvent>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

namespace mr::ui {

namespace {

constexpr int kPlanDelayMs = 150;
constexpr int kPageMargin = 16;
constexpr int kPlanWidth = 396;

QScrollArea* makeScroll(QWidget* content, QWidget* parent)
{
    auto* area = new QScrollArea(parent);
    area->setWidget(content);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    area->setFocusPolicy(Qt::NoFocus);
    // Shortcuts of labels lead to fields that are out of sight, too.
    QObject::connect(qApp, &QApplication::focusChanged, area, [area](QWidget*, QWidget* now) {
        if (now != nullptr && area->widget()->isAncestorOf(now))
            area->ensureWidgetVisible(now);
    });
    return area;
}

} // namespace

NewRunPage::NewRunPage(const UiServices& services, QWidget* parent)
    : QWidget(parent)
    , m_services(services)
{
    auto* columns = new QHBoxLayout;
    columns->setSpacing(0);
    columns->addWidget(makeForm(), 1);
    columns->addWidget(makePlanSide());
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(columns, 1);
    layout->addWidget(makeBottomBar());

    m_delay.setSingleShot(true);
    m_delay.setInterval(kPlanDelayMs);
    connect(&m_delay, &QTimer::timeout, this, &NewRunPage::ask);
    connect(m_model, &ModelSection::changed, this, &NewRunPage::inputChanged);
    connect(m_dataset, &DatasetSection::changed, this, &NewRunPage::inputChanged);
    connect(m_method, &MethodSection::changed, this, &NewRunPage::inputChanged);
    connect(m_settings, &SettingsForm::changed, this, &NewRunPage::inputChanged);
    connect(m_scratch, &ScratchSection::changed, this, &NewRunPage::inputChanged);
    connect(m_folder, &PathEdit::pathChanged, this, &NewRunPage::inputChanged);
    m_draft.fill(shown(), shown());
    retranslateUi();
    inputChanged();
}

QWidget* NewRunPage::makeForm()
{
    auto* form = new QWidget;
    m_model = new ModelSection(m_services, form);
    m_dataset = new DatasetSection(m_services, form);
    m_method = new MethodSection(form);
    m_settings = new SettingsForm(m_services.policies, form);
    m_scratch = new ScratchSection(m_services, form);
    m_settings->addAdvanced(m_scratch);
    m_kept = new MessageLabel(form);
    m_kept->setObjectName(QStringLiteral("keptSettings"));
    m_outputCard = new Card(form);
    m_nameLabel = new QLabel(m_outputCard);
    m_name = new QLineEdit(m_outputCard);
    m_name->setObjectName(QStringLiteral("runName"));
    m_nameLabel->setBuddy(m_name);
    m_folderLabel = new QLabel(m_outputCard);
    m_folder = new PathEdit(PathEdit::Want::Folder, m_outputCard);
    m_folder->setObjectName(QStringLiteral("runFolder"));
    m_folderLabel->setBuddy(m_folder->edit());
    m_folderMessage = new MessageLabel(m_outputCard);
    for (QWidget* widget : {static_cast<QWidget*>(m_nameLabel), static_cast<QWidget*>(m_name),
             static_cast<QWidget*>(m_folderLabel), static_cast<QWidget*>(m_folder),
             static_cast<QWidget*>(m_folderMessage)})
        m_outputCard->body()->addWidget(widget);

    auto* layout = new QVBoxLayout(form);
    layout->setContentsMargins(kPageMargin, kPageMargin, kPageMargin, kPageMargin);
    layout->setSpacing(kPageMargin);
    layout->addWidget(m_model);
    layout->addWidget(m_dataset);
    layout->addWidget(m_method);
    layout->addWidget(m_settings);
    layout->addWidget(m_kept);
    layout->addWidget(m_outputCard);
    layout->addStretch(1);
    m_formArea = makeScroll(form, this);
    return m_formArea;
}

QWidget* NewRunPage::makePlanSide()
{
    auto* side = new QWidget;
    m_planCard = new Card(side);
    m_plan = new PlanPanel(m_planCard);
    m_measure = new QPushButton(svgIcon(QStringLiteral("refresh")), QString(), m_planCard);
    m_measure->setObjectName(QStringLiteral("measureAgain"));
    m_measure->hide();
    m_measured = new MessageLabel(m_planCard);
    m_planCard->header()->addWidget(m_measure);
    m_planCard->body()->addWidget(m_measured);
    m_planCard->body()->addWidget(m_plan, 1);
    connect(m_measure, &QPushButton::clicked, this, &NewRunPage::measureAgain);
    connect(m_plan, &PlanPanel::lighterChosen, this, &NewRunPage::takeLighter);
    auto* layout = new QVBoxLayout(side);
    layout->setContentsMargins(kPageMargin, kPageMargin, kPageMargin, kPageMargin);
    layout->addWidget(m_planCard);
    layout->addStretch(1);
    auto* area = makeScroll(side, this);
    area->setObjectName(QStringLiteral("plan"));
    area->setFixedWidth(kPlanWidth);
    return area;
}

QWidget* NewRunPage::makeBottomBar()
{
    auto* bar = new QWidget(this);
    m_message = new MessageLabel(bar);
    m_copy = new QPushButton(svgIcon(QStringLiteral("copy")), QString(), bar);
    m_start = new QPushButton(svgIcon(QStringLiteral("play")), QString(), bar);
    m_start->setObjectName(QStringLiteral("start"));
    m_start->setDefault(true);
    // An action, because the shortcut of a button fires late.
    m_startAction = new QAction(this);
    m_startAction->setShortcuts(
        {QKeySequence(Qt::CTRL | Qt::Key_Return), QKeySequence(Qt::CTRL | Qt::Key_Enter)});
    m_startAction->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    addAction(m_startAction);
    connect(m_startAction, &QAction::triggered, this, &NewRunPage::start);
    connect(m_start, &QPushButton::clicked, this, &NewRunPage::start);
    connect(m_copy, &QPushButton::clicked, this, &NewRunPage::copyCommand);

    auto* layout = new QHBoxLayout(bar);
    layout->setContentsMargins(kPageMargin, 8, kPageMargin, 12);
    layout->setSpacing(12);
    layout->addWidget(m_message, 1);
    layout->addStretch(0);
    layout->addWidget(m_copy);
    layout->addWidget(m_start);
    return bar;
}

void NewRunPage::setRunActive(bool active)
{
    m_runActive = active;
    m_message->clear();
    updateMeasure();
}

void NewRunPage::showStartProblem(const QString& sentence)
{
    m_message->show(MessageLabel::Kind::Error, sentence);
}

bool NewRunPage::settled() const
{
    return m_model->settled() && m_dataset->settled() && m_scratch->settled() &&
           !m_delay.isActive() && !m_question.busy();
}

void NewRunPage::inputChanged()
{
    m_planCurrent = false;
    m_dataset->setModel(m_model->info() ? m_model->path() : QString(), dataSeqLen());
    m_name->setPlaceholderText(RunDraft::suggestedName(m_model->path(), m_dataset->path()));
    m_method->setModel(m_model->info());
    m_settings->setAdapter(isAdapter(m_method->method()));
    m_settings->setEvaluated(!m_dataset->evalPath().isEmpty() || m_draft.holdsOut());
    showKept();
    const QString folder = m_folder->path();
    if (QDir::isRelativePath(folder) && !folder.isEmpty())
        m_folderMessage->show(MessageLabel::Kind::Error,
            tr("%1 does not say where. Choose a folder, or write its whole path, from / or ~ on.")
                .arg(folder));
    else if (!folder.isEmpty() && QFileInfo::exists(folder) &&
             !QDir(folder).isEmpty(QDir::AllEntries | QDir::NoDotAndDotDot))
        m_folderMessage->show(MessageLabel::Kind::Error,
            tr("%1 is not empty. Choose a new folder; an old run is continued from History.")
                .arg(folder));
    else
        m_folderMessage->clear();
    m_message->clear();
    m_delay.start();
}

void NewRunPage::ask()
{
    if (!m_model->info() && !m_model->canBePlanned()) {
        m_question.cancel();
        m_measure->hide();
        m_method->setPlans({});
        m_plan->setWaiting(tr("Choose a model folder, and the plan appears here: how many bytes "
                              "each memory would hold, and what binds."));
        return;
    }
    m_plan->setBusy(true);
    const std::int64_t rows = m_dataset->batchRows();
    const PlanQuestion question{runs(), m_method->withAdapter(runs().front()), rows};
    const auto work = [services = m_services, question] { return planAnswer(services, question); };
    m_question.ask(work, [this](const PlanAnswer& answer) { showAnswer(answer); });
}

void NewRunPage::showAnswer(const PlanAnswer& answer)
{
    m_measure->setVisible(!answer.problem && m_services.measureRates != nullptr);
    updateMeasure();
    m_method->setPlans(answer.methods);
    if (const QString problem = m_method->problem(); !problem.isEmpty()) {
        m_plan->setWaiting(problem);
        return;
    }
    if (answer.problem) {
        m_plan->setProblem(QString::fromStdString(answer.problem->message()));
        return;
    }
    m_planCurrent = true;
    if (answer.views.size() > 1)
        m_plan->setPlan(answer.views[0], answer.views[1]);
    else
        m_plan->setPlan(answer.views.front());
}

std::optional<NewRunPage::Problem> NewRunPage::firstProblem() const
{
    const auto problem = [](const QString& sentence, QWidget* where) {
        return Problem{sentence, where};
    };
    if (m_model->path().isEmpty())
        return problem(tr("Choose a model folder."), m_model->pathEdit());
    if (!m_model->info())
        return problem(tr("This model cannot be trained: see its message."), m_model->pathEdit());
    if (m_dataset->path().isEmpty())
        return problem(tr("Choose a training file."), m_dataset->pathEdit());
    if (!m_dataset->info())
        return problem(tr("This dataset cannot be used: see its message."), m_dataset->pathEdit());
    if (!m_dataset->evalMessage()->text().isEmpty())
        return problem(m_dataset->evalMessage()->text(), m_dataset);
    if (!m_method->problem().isEmpty())
        return problem(m_method->problem(), m_method->layers());
    if (!m_scratch->problem().isEmpty())
        return problem(m_scratch->problem(), m_scratch->pathEdit());
    if (!m_folderMessage->text().isEmpty())
        return problem(m_folderMessage->text(), m_folder);
    if (m_settings->secondPolicy() == m_settings->policies()->policy())
        return problem(
            tr("Choose another policy to compare with."), m_settings->policies()->second());
    if (!m_planCurrent && m_question.busy())
        return problem(tr("The plan is still being made; try again in a moment."), nullptr);
    if (!m_plan->plan())
        return problem(m_delay.isActive()
                           ? tr("The plan is still being made; try again in a moment.")
                           : m_plan->headline(),
            nullptr);
    for (const std::optional<PlanView>& view : {m_plan->plan(), m_plan->compared()}) {
        if (view && !view->report.fits)
            return problem(tr("The run does not fit: see the plan."), nullptr);
        if (view && !view->diskFits())
            return problem(tr("The checkpoints do not fit on the disk: see the plan."), nullptr);
    }
    return std::nullopt;
}

void NewRunPage::start()
{
    if (m_runActive) {
        m_message->show(MessageLabel::Kind::Warning,
            tr("A run is active. Stop it on the Live page before starting another."));
        return;
    }
    if (const auto problem = firstProblem()) {
        m_message->show(MessageLabel::Kind::Error, problem->sentence);
        if (problem->where) {
            m_formArea->ensureWidgetVisible(problem->where);
            problem->where->setFocus(Qt::OtherFocusReason);
        }
        return;
    }
    m_message->clear();
    const std::vector<RunSpec> wanted = runs();
    if (wanted.size() > 1)
        emit comparisonRequested(wanted);
    else
        emit startRequested(wanted.front());
}

void NewRunPage::copyCommand()
{
    QApplication::clipboard()->setText(commandLine());
    m_message->show(MessageLabel::Kind::Info, tr("Copied to the clipboard."));
}

void NewRunPage::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) {
        retranslateUi();
        inputChanged();
    }
}

void NewRunPage::retranslateUi()
{
    m_outputCard->setTitle(tr("Output"));
    m_nameLabel->setText(tr("&Name of the run"));
    m_name->setAccessibleName(tr("Name of the run"));
    m_folderLabel->setText(tr("Run f&older (optional)"));
    m_folder->setTexts(tr("Run folder"),
        tr("Empty: a new folder in %1").arg(QString::fromStdString(m_services.runsFolder)));
    m_planCard->setTitle(tr("Plan"));
    updateMeasure();
    m_copy->setText(tr("Copy as command line"));
    m_start->setText(tr("Start"));
    m_startAction->setText(tr("Start the run"));
    m_start->setToolTip(
        tr("Start the run (%1)").arg(m_startAction->shortcut().toString(QKeySequence::NativeText)));
}

} // namespace mr::ui
