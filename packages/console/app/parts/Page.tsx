/**
 * What each page has: its title, where it stands, and what one can do there.
 */
import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { unturned, useTexts } from "../text/text.ts"

/** A page that stands above this one. */
export interface Crumb {
  readonly title: string
  readonly href: string
}

/** The title is read out when the page opens. */
export const Page = (
  { actions, children, crumbs = [], lead, tab, title }: {
    readonly title: string
    /** The title of the tab that is shown. Undefined: the first one, or the page has none. */
    readonly tab?: string | undefined
    readonly lead?: ComponentChildren
    readonly crumbs?: ReadonlyArray<Crumb>
    readonly actions?: ComponentChildren
    readonly children: ComponentChildren
  }
) => {
  const { common } = useTexts()
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = unturned([...tab === undefined ? [] : [tab], title, common.product].join(" · "))
  }, [tab, title, common])
  useEffect(() => heading.current?.focus({ preventScroll: true }), [])
  return (
    <>
      <div class="page-head">
        <div>
          {crumbs.length > 0 && (
            <ol class="crumbs">
              {crumbs.map((crumb) => <li key={crumb.href}><a href={crumb.href}>{crumb.title}</a></li>)}
            </ol>
          )}
          <h1 tabIndex={-1} ref={heading}>{title}</h1>
          {lead !== undefined && <p class="lead">{lead}</p>}
        </div>
        {actions !== undefined && <div class="row">{actions}</div>}
      </div>
      {children}
    </>
  )
}

/** Parts of a page that have addresses of their own. */
export const Tabs = (
  { current, label, tabs }: {
    readonly label: string
    readonly current: string
    readonly tabs: ReadonlyArray<{ readonly id: string; readonly title: string; readonly href: string }>
  }
) => {
  const list = useRef<HTMLElement>(null)
  // On a narrow screen the tabs scroll.
  useEffect(() => {
    list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" })
  }, [current])
  return (
    <nav class="tabs" aria-label={label} ref={list} onKeyDown={moveFocus}>
      {tabs.map(({ href, id, title }) => (
        <a key={id} href={href} {...id === current ? { "aria-current": "page" as const } : {}}>{title}</a>
      ))}
    </nav>
  )
}

/** With the arrow keys one goes from tab to tab. */
const moveFocus = (event: KeyboardEvent & { readonly currentTarget: HTMLElement }) => {
  const links = [...event.currentTarget.querySelectorAll("a")]
  const here = links.findIndex((link) => link === document.activeElement)
  const places: Readonly<Record<string, number>> = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: -1 }
  const place = places[event.key]
  if (place === undefined) return
  event.preventDefault()
  links.at(place % links.length)?.focus()
}

/** A group of what belongs together. */
export const Card = (
  { actions, children, title }: {
    readonly title?: ComponentChildren
    readonly actions?: ComponentChildren
    readonly children: ComponentChildren
  }
) => (
  <section class="card">
    {(title !== undefined || actions !== undefined) && (
      <header>
        {title !== undefined && <h2>{title}</h2>}
        {actions !== undefined && <div class="row">{actions}</div>}
      </header>
    )}
    {children}
  </section>
)

/** Names and their values. What is undefined is left out. */
export const Facts = ({ facts }: { readonly facts: ReadonlyArray<readonly [string, ComponentChildren]> }) => (
  <dl class="facts">
    {facts.filter(([, value]) => value !== undefined && value !== null).map(([name, value]) => (
      <>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </>
    ))}
  </dl>
)

/** What stands where nothing is yet: it says what to do next. */
export const Empty = (
  { actions, children, title }: {
    readonly title: string
    readonly actions?: ComponentChildren
    readonly children?: ComponentChildren
  }
) => (
  <div class="empty">
    <h2>{title}</h2>
    {children !== undefined && <p class="soft">{children}</p>}
    {actions !== undefined && <div class="row">{actions}</div>}
  </div>
)
