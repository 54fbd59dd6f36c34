#include "pages/report_dialog.h"

#include "bridge/app_log.h"
#include "bridge/background.h"

#include <QCheckBox>
#include <QClipboard>
#include <QDate>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFontDatabase>
#include <QGuiApplication>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSaveFile>
#include <QStandardPaths>
#include <QVBoxLayout>

#include <memory>

namespace mr::ui {

namespace {

constexpr std::int64_t kLogBytes = 32 * 1024;

QString defaultName()
{
    return QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation) +
           QStringLiteral("/millrace-report-") + QDate::currentDate().toString(Qt::ISODate) +
           QStringLiteral(".txt");
}

} // namespace

ReportDialog::ReportDialog(const UiServices& services, QWidget* parent)
    : QDialog(parent)
    , m_text(new QPlainTextEdit)
    , m_withTexts(new QCheckBox(tr("Include prompts, answers and notes of the last run")))
    , m_message(new QLabel)
{
    setObjectName(QStringLiteral("report"));
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Save report"));
    auto* head = new QLabel(tr("This is all that is saved: versions, this machine, the settings "
                               "and messages of the last run, the end of the log. It names files "
                               "and folders. Nothing is sent anywhere."));
    head->setWordWrap(true);
    m_text->setReadOnly(true);
    m_text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_text->setAccessibleName(tr("Report"));
    m_text->setPlainText(tr("Collecting…"));
    m_withTexts->setObjectName(QStringLiteral("withTexts"));
    m_message->setWordWrap(true);
    auto* buttons = new QDialogButtonBox;
    m_save = buttons->addButton(tr("Save…"), QDialogButtonBox::ActionRole);
    m_copy = buttons->addButton(tr("Copy"), QDialogButtonBox::ActionRole);
    // Last, as it stands: Tab passes over one that was made before the others.
    buttons->addButton(tr("Close"), QDialogButtonBox::RejectRole);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_save, &QPushButton::clicked, this, &ReportDialog::save);
    connect(m_copy, &QPushButton::clicked, this, [this] {
        QGuiApplication::clipboard()->setText(text());
        m_message->setText(tr("Copied to the clipboard."));
    });
    connect(m_withTexts, &QCheckBox::toggled, this, &ReportDialog::refresh);

    auto* layout = new QVBoxLayout(this);
    layout->addWidget(head);
    layout->addWidget(m_text, 1);
    layout->addWidget(m_withTexts);
    layout->addWidget(m_message);
    layout->addWidget(buttons);
    resize(760, 560);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_save, m_copy, m_withTexts})
        widget->setEnabled(false);
    background<std::shared_ptr<ReportParts>>(
        this, [services] { return std::make_shared<ReportParts>(collect(services)); },
        [this](const std::shared_ptr<ReportParts>& parts) { showParts(*parts); });
}

ReportParts ReportDialog::collect(const UiServices& services)
{
    ReportParts parts;
    parts.program = QString::fromStdString(services.program);
    parts.machine = services.inspectMachine();
    parts.log = AppLog::tail(QString::fromStdString(services.logFile), kLogBytes);
    auto reader = services.openReader(services.database);
    auto runs = reader.ok() ? reader.value()->runs() : Result<std::vector<RunRow>>(reader.status());
    if (!runs.ok()) {
        parts.problem = QString::fromStdString(runs.status().message());
        return parts;
    }
    if (runs.value().empty())
        return parts;
    parts.run = runs.value().front();
    auto events = reader.value()->events(parts.run->id, -1);
    auto answers = reader.value()->answers(parts.run->id);
    if (events.ok())
        parts.events = std::move(events).value();
    if (answers.ok())
        parts.answers = std::move(answers).value();
    return parts;
}

void ReportDialog::showParts(const ReportParts& parts)
{
    m_parts = parts;
    m_isReady = true;
    for (QWidget* widget : std::initializer_list<QWidget*>{m_save, m_copy, m_withTexts})
        widget->setEnabled(true);
    refresh();
}

QString ReportDialog::text() const
{
    if (!m_isReady)
        return {};
    return reportText(
        m_parts, m_withTexts->isChecked() ? ReportDetail::WithTexts : ReportDetail::WithoutTexts);
}

void ReportDialog::refresh()
{
    m_text->setPlainText(text());
}

QString ReportDialog::saveTo(const QString& path)
{
    QSaveFile file(path);
    const QByteArray content = text().toUtf8();
    const bool isSaved =
        file.open(QIODevice::WriteOnly) && file.write(content) == content.size() && file.commit();
    return isSaved ? QString() : tr("%1 could not be written: %2").arg(path, file.errorString());
}

void ReportDialog::save()
{
    const QString path = QFileDialog::getSaveFileName(this, tr("Save report"), defaultName());
    if (path.isEmpty())
        return;
    const QString problem = saveTo(path);
    m_message->setText(problem.isEmpty() ? tr("Saved to %1").arg(path) : problem);
}

} // namespace mr::ui
