#include "language.h"

#include <QCoreApplication>
#include <QLibraryInfo>
#include <QLocale>

#include <algorithm>

static void initTranslationResource()
{
    Q_INIT_RESOURCE(millrace_i18n);
}

namespace mr::ui {

Language::Language(QObject* parent)
    : QObject(parent)
{
    initTranslationResource();
}

Language::~Language()
{
    QCoreApplication::removeTranslator(&m_own);
    QCoreApplication::removeTranslator(&m_qt);
}

QVector<Language::Entry> Language::available()
{
    return {{QStringLiteral("en"), QStringLiteral("English")},
        {QStringLiteral("ja"), QStringLiteral("日本語")}};
}

void Language::choose(const QString& code)
{
    const auto known = [](const QString& wanted) {
        const auto entries = available();
        return std::any_of(entries.begin(), entries.end(),
            [&wanted](const Entry& entry) { return entry.code == wanted; });
    };
    const QString system = QLocale::system().name().section(QLatin1Char('_'), 0, 0);
    m_code = known(code) ? code : known(system) ? system : QStringLiteral("en");

    // Numbers and dates follow the system where it speaks the chosen language.
    QLocale::setDefault(m_code == system ? QLocale::system() : QLocale(m_code));
    QCoreApplication::removeTranslator(&m_own);
    QCoreApplication::removeTranslator(&m_qt);
    if (m_qt.load(
            QStringLiteral("qtbase_") + m_code, QLibraryInfo::path(QLibraryInfo::TranslationsPath)))
        QCoreApplication::installTranslator(&m_qt);
    if (m_own.load(QStringLiteral("millrace_") + m_code, QStringLiteral(":/i18n")))
        QCoreApplication::installTranslator(&m_own);
}

} // namespace mr::ui
