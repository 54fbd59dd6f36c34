#include "widgets/run_tray.h"

#include "models/run_progress.h"
#include "text/svg_icon.h"
#include "widgets/status_strip.h"

#include <QAction>

namespace mr::ui {

RunTray::RunTray(QObject* parent)
    : QObject(parent)
    , m_icon(applicationIcon())
    , m_open(m_menu.addAction(QString(), this, &RunTray::openRequested))
    , m_stop(m_menu.addAction(QString(), this, &RunTray::stopRequested))
    , m_quit(m_menu.addAction(QString(), this, &RunTray::quitRequested))
{
    m_menu.insertSeparator(m_quit);
    m_menu.setDefaultAction(m_open);
    m_icon.setContextMenu(&m_menu);
    // The language may have changed since.
    connect(&m_menu, &QMenu::aboutToShow, this, &RunTray::refresh);
    connect(&m_icon, &QSystemTrayIcon::activated, this, [this](auto reason) {
        if (reason != QSystemTrayIcon::Context)
            emit openRequested();
    });
    refresh();
}

void RunTray::show()
{
    refresh();
    m_icon.show();
}

void RunTray::hide()
{
    m_icon.hide();
}

void RunTray::setSnapshot(const RunSnapshotPtr& snapshot)
{
    m_snapshot = snapshot;
    refresh();
}

void RunTray::refresh()
{
    const bool isActive = m_snapshot && !isEnded(m_snapshot->run);
    m_icon.setToolTip(QStringLiteral("Millrace\n") +
                      (isActive ? StatusStrip::line(*m_snapshot) : tr("No run is active.")));
    m_open->setText(tr("Open"));
    m_stop->setText(tr("Save and stop"));
    m_stop->setEnabled(isActive);
    m_quit->setText(tr("Quit"));
}

} // namespace mr::ui
