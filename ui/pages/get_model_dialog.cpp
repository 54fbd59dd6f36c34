#include "pages/get_model_dialog.h"

#include "bridge/background.h"
#include "text/units.h"
#include "widgets/card.h"
#include "widgets/message_label.h"
#include "widgets/progress_line.h"

#include <QComboBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTreeWidget>
#include <QVBoxLayout>

#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

namespace mr::ui {

namespace {

constexpr int kGlanceMs = 200;

QString bytesText(std::uint64_t bytes)
{
    return memoryText(static_cast<double>(bytes));
}

// "organisation/model"
bool isHubName(const QString& name)
{
    const qsizetype slash = name.indexOf(u'/');
    return slash > 0 && slash + 1 < name.size() && name.count(u'/') == 1 && !name.contains(u' ');
}

} // namespace

struct GetModelDialog::Work {
    std::stop_source stop;
    std::mutex mutex;
    HubProgress progress; // guarded by mutex
    std::string note;     // guarded by mutex; the last one
};

HubWatch GetModelDialog::watchOf(const std::shared_ptr<Work>& work)
{
    HubWatch watch;
    watch.stop = work->stop.get_token();
    watch.note = [work](const std::string& text) {
        const std::lock_guard lock(work->mutex);
        work->note = text;
    };
    watch.progress = [work](const HubProgress& now) {
        const std::lock_guard lock(work->mutex);
        work->progress = now;
    };
    return watch;
}

GetModelDialog::GetModelDialog(const UiServices& services, QWidget* parent)
    : QDialog(parent)
    , m_services(services)
    , m_name(new QLineEdit)
    , m_kind(new QComboBox)
    , m_host(makeMutedLabel())
    , m_list(new QPushButton(tr("Show files")))
    , m_files(new QTreeWidget)
    , m_progress(new ProgressLine(tr("Progress of the download")))
    , m_message(new MessageLabel)
    , m_fetch(new QPushButton)
    , m_use(new QPushButton(tr("Use")))
{
    setObjectName(QStringLiteral("getModel"));
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Get a model"));
    auto* layout = new QVBoxLayout(this);
    makeBody(*layout);
    makeButtons(*layout);
    connect(m_name, &QLineEdit::textChanged, this, &GetModelDialog::forget);
    connect(m_kind, &QComboBox::currentIndexChanged, this, &GetModelDialog::forget);
    connect(m_list, &QPushButton::clicked, this, &GetModelDialog::askForFiles);
    connect(m_fetch, &QPushButton::clicked, this, &GetModelDialog::download);
    connect(m_use, &QPushButton::clicked, this, [this] {
        emit chosen(QString::fromStdString(m_plan->folder.string()));
        accept();
    });
    connect(&m_timer, &QTimer::timeout, this, &GetModelDialog::look);
    resize(760, 520);
    forget();
    background<Result<HubPeer>>(
        this, [ask = m_services.hubPeer] { return ask(); },
        [this](const Result<HubPeer>& peer) { showHost(peer); });
}

GetModelDialog::~GetModelDialog()
{
    if (m_work)
        m_work->stop.request_stop();
}

void GetModelDialog::makeBody(QVBoxLayout& layout)
{
    m_name->setPlaceholderText(tr("organisation/model, as on its page"));
    m_name->setClearButtonEnabled(true);
    m_kind->addItem(tr("Model"), static_cast<int>(HubKind::Model));
    m_kind->addItem(tr("Dataset"), static_cast<int>(HubKind::Dataset));
    m_kind->setAccessibleName(tr("Kind"));
    m_host->setWordWrap(true);
    auto* line = new QHBoxLayout;
    line->addWidget(m_kind);
    line->addWidget(m_name, 1);
    line->addWidget(m_list);
    auto* form = new QFormLayout;
    form->addRow(tr("Name"), line);
    m_name->setAccessibleName(tr("Name"));
    m_files->setRootIsDecorated(false);
    m_files->setUniformRowHeights(true);
    m_files->setAccessibleName(tr("Files"));
    m_files->setHeaderLabels({tr("File"), tr("Size"), tr("State")});
    m_files->header()->setSectionResizeMode(0, QHeaderView::Stretch);
    m_files->header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
    m_files->header()->setSectionResizeMode(2, QHeaderView::ResizeToContents);
    m_files->header()->setStretchLastSection(false);
    layout.addLayout(form);
    layout.addWidget(m_host);
    layout.addWidget(m_files, 1);
    layout.addWidget(m_progress);
    layout.addWidget(m_message);
}

void GetModelDialog::makeButtons(QVBoxLayout& layout)
{
    auto* close = new QPushButton(tr("Close"));
    auto* row = new QHBoxLayout;
    row->addStretch(1);
    for (QPushButton* button : {m_use, m_fetch, close}) {
        row->addWidget(button);
        button->setAutoDefault(false);
    }
    m_list->setDefault(true);
    layout.addLayout(row);
    connect(close, &QPushButton::clicked, this, &QDialog::reject);
}

void GetModelDialog::showHost(const Result<HubPeer>& peer)
{
    if (!peer.ok())
        return showProblem(peer.status());
    const HubPeer found = Result(peer).value();
    const QString host = QString::fromStdString(found.host);
    m_host->setText(
        found.hasToken
            ? tr("Show files asks %1 for the list of files, with your token. Nothing else is sent.")
                  .arg(host)
            : tr("Show files asks %1 for the list of files. Nothing else is sent.").arg(host));
    m_hasHost = true;
    enable();
}

void GetModelDialog::forget()
{
    m_plan.reset();
    m_isFetched = false;
    m_files->clear();
    m_message->clear();
    enable();
}

std::shared_ptr<GetModelDialog::Work> GetModelDialog::begin()
{
    m_work = std::make_shared<Work>();
    m_timer.start(kGlanceMs);
    if (m_plan)
        m_progress->begin();
    enable();
    return m_work;
}

void GetModelDialog::askForFiles()
{
    forget();
    HubRequest request;
    request.name = m_name->text().trimmed().toStdString();
    request.kind = static_cast<HubKind>(m_kind->currentData().toInt());
    const std::shared_ptr<Work> work = begin();
    m_message->show(MessageLabel::Kind::Busy, tr("Asking for the list of files…"));
    using Plan = std::shared_ptr<Result<HubPlan>>;
    background<Plan>(
        this,
        [work, request, plan = m_services.planDownload] {
            return std::make_shared<Result<HubPlan>>(plan(request, watchOf(work)));
        },
        [this](const Plan& plan) {
            m_work.reset();
            m_timer.stop();
            if (plan->ok())
                showPlan(plan->value());
            else
                showProblem(plan->status());
            enable();
        });
}

void GetModelDialog::showPlan(const HubPlan& plan)
{
    m_plan = plan;
    const auto add = [this](const std::string& path, std::uint64_t bytes, const QString& state) {
        auto* row = new QTreeWidgetItem({QString::fromStdString(path), bytesText(bytes), state});
        row->setTextAlignment(1, Qt::AlignRight | Qt::AlignVCenter);
        m_files->addTopLevelItem(row);
        return row;
    };
    for (const HubPlannedFile& planned : plan.files)
        add(planned.file.path, planned.file.bytes,
            planned.haveBytes == 0 ? tr("to be fetched")
            : planned.haveBytes == planned.file.bytes
                ? tr("is there")
                : tr("%1 are there").arg(bytesText(planned.haveBytes)));
    for (const HubLeftOut& left : plan.leftOut)
        add(left.path, left.bytes, tr("left out: %1").arg(QString::fromStdString(left.reason)))
            ->setDisabled(true);
    const bool fits = plan.fetchBytes <= plan.freeBytes;
    m_message->showLines(fits ? MessageLabel::Kind::Info : MessageLabel::Kind::Error,
        {tr("%1 to be fetched of %2; %3 free on the disk.")
                .arg(bytesText(plan.fetchBytes), bytesText(plan.bytes), bytesText(plan.freeBytes)),
            fits ? tr("Goes to %1").arg(QString::fromStdString(plan.folder.string()))
                 : tr("The disk is too full. Make room, or set HF_HOME to a folder elsewhere.")});
}

void GetModelDialog::download()
{
    if (m_work) { // the button stops it
        m_work->stop.request_stop();
        m_fetch->setEnabled(false);
        return;
    }
    const std::shared_ptr<Work> work = begin();
    background<Status>(
        this,
        [work, plan = *m_plan, run = m_services.runDownload] { return run(plan, watchOf(work)); },
        [this](const Status& status) { finish(status); });
}

void GetModelDialog::finish(const Status& status)
{
    m_work.reset();
    m_timer.stop();
    m_progress->end();
    m_isFetched = status.ok();
    if (!status.ok()) {
        showProblem(status);
        return enable();
    }
    const QString path = QString::fromStdString(m_plan->folder.string());
    for (int i = 0; i < static_cast<int>(m_plan->files.size()); ++i)
        m_files->topLevelItem(i)->setText(2, tr("is there"));
    m_message->show(MessageLabel::Kind::Good, tr("Fetched and checked: %1").arg(path));
    enable();
    emit fetched(path);
}

void GetModelDialog::look()
{
    if (!m_work || !m_plan)
        return;
    HubProgress now;
    QString note;
    {
        const std::lock_guard lock(m_work->mutex);
        now = m_work->progress;
        note = QString::fromStdString(m_work->note);
    }
    m_progress->setDone(
        now.doneBytes, now.allBytes, tr("%1 of %2 files").arg(now.doneFiles).arg(now.allFiles));
    const QString asked = tr("Asking %1…").arg(QString::fromStdString(m_plan->host));
    m_message->show(MessageLabel::Kind::Busy, note.isEmpty() ? asked : note);
}

void GetModelDialog::showProblem(const Status& status)
{
    if (status.kind() == ErrorKind::Cancelled)
        m_message->show(MessageLabel::Kind::Info,
            tr("Stopped. What was fetched is kept; Fetch goes on from there."));
    else
        m_message->show(MessageLabel::Kind::Error, QString::fromStdString(status.message()));
}

void GetModelDialog::enable()
{
    const bool isBusy = busy();
    const bool isModel = m_kind->currentData().toInt() == static_cast<int>(HubKind::Model);
    m_name->setEnabled(!isBusy);
    m_kind->setEnabled(!isBusy);
    m_list->setEnabled(!isBusy && m_hasHost && isHubName(m_name->text().trimmed()));
    m_fetch->setText(isBusy ? tr("Stop") : tr("Fetch"));
    m_fetch->setEnabled(
        isBusy || (m_plan && !m_isFetched && m_plan->fetchBytes <= m_plan->freeBytes));
    m_use->setVisible(m_isFetched && isModel);
}

} // namespace mr::ui
