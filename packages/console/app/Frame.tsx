/**
 * What stands around all pages: where one can go, and who one is.
 */
import type { ComponentChildren } from "preact"
import { useLocation } from "preact-iso"
import { useEffect, useRef, useState } from "preact/hooks"
import { connection } from "./api/live.ts"
import { hasEnded, session, signOut } from "./api/session.ts"
import { tellFailure } from "./parts/toasts.tsx"
import { addressOf, readablePlaces } from "./places.ts"
import { chooseLanguage, language, type Language, languages, useTexts } from "./text/text.ts"
import { chooseTheme, type Theme, theme, themes } from "./theme.ts"

/** `isBusy`: the next page is on its way, and the one before is still there. */
export const Frame = (
  { children, isBusy }: { readonly children: ComponentChildren; readonly isBusy: boolean }
) => {
  const { common } = useTexts()
  const { path } = useLocation()
  const [isOpen, setOpen] = useState(false)
  const menu = useRef<HTMLButtonElement>(null)
  const main = useRef<HTMLElement>(null)
  useEffect(() => setOpen(false), [path])
  const closeByKey = (event: KeyboardEvent) => {
    if (!isOpen || event.key !== "Escape") return
    setOpen(false)
    menu.current?.focus()
  }
  // A link to the page where one is changes no path, and its page takes no focus.
  const closeByLink = ({ target }: MouseEvent) => {
    if (!isOpen || !(target instanceof Element) || target.closest("a") === null) return
    setOpen(false)
    main.current?.focus()
  }
  return (
    <>
      <a class="skip" href="#main">{common.skip}</a>
      <header class="top">
        <Brand />
        <button
          type="button"
          class="button"
          ref={menu}
          aria-expanded={isOpen}
          aria-controls="side"
          onClick={() => setOpen(!isOpen)}
          onKeyDown={closeByKey}
        >
          {common.menu}
        </button>
      </header>
      <div class="frame">
        <div id="side" class={isOpen ? "side open" : "side"} onKeyDown={closeByKey} onClick={closeByLink}>
          <Brand />
          <Navigation path={path} />
          <Settings />
        </div>
        <div>
          {connection.value === "lost" && !hasEnded.value && <div class="banner" role="status">{common.lost}</div>}
          <main id="main" tabIndex={-1} ref={main} aria-busy={isBusy}>{children}</main>
        </div>
      </div>
    </>
  )
}

const Brand = () => {
  const { common } = useTexts()
  return (
    <a class="brand" href="/console">
      <img src="/console/icon.svg" alt="" />
      {common.product}
    </a>
  )
}

const Navigation = ({ path }: { readonly path: string }) => {
  const { common, shell } = useTexts()
  const current = path.split("/")[2] ?? ""
  return (
    <nav aria-label={common.navigation}>
      <ul>
        {readablePlaces().map((place) => {
          const isHere = place === "overview" ? current === "" : current === place
          return (
            <li key={place}>
              <a
                href={addressOf(place)}
                {...isHere ? { "aria-current": "page" as const } : {}}
              >
                {shell.pages[place]}
              </a>
            </li>
          )
        })}
      </ul>
    </nav>
  )
}

const Settings = () => {
  const { common } = useTexts()
  const { key_id, key_name, project_id, project_name, role } = session.value!
  return (
    <div class="side-end">
      <p class="who">
        {project_name ?? project_id}
        <br />
        {common.signedInAs(key_name ?? key_id, common.roles[role])}
      </p>
      <select
        aria-label={common.language}
        value={language.value}
        onChange={({ currentTarget }) =>
          void chooseLanguage(currentTarget.value as Language).catch(() => {
            currentTarget.value = language.value
            tellFailure(new Error(common.notLoadedHint))
          })}
      >
        {Object.entries(languages).map(([id, title]) => <option key={id} value={id} lang={id}>{title}</option>)}
      </select>
      <select
        aria-label={common.theme}
        value={theme.value}
        onChange={(event) => chooseTheme(event.currentTarget.value as Theme)}
      >
        {themes.map((id) => <option key={id} value={id}>{common.themes[id]}</option>)}
      </select>
      <button type="button" class="button" onClick={() => void signOut().catch(tellFailure)}>{common.signOut}</button>
    </div>
  )
}
