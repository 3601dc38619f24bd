/**
 * The shape of a curve: what grows, at which points it is measured, and which figures
 * are drawn.
 */

/** Measured numbers by name. */
export type Figures = Readonly<Record<string, number>>

/** One of the pictures of a curve: a figure over the axis. */
export interface Panel {
  readonly figure: string
  readonly title: string
}

/** Measures a server at its point, as often as it is called. */
export type Measure = () => Promise<Figures>

/** Brings a server to a point while `use` runs. */
export type Subject = (point: number, use: (measure: Measure) => Promise<void>) => Promise<void>

export interface Curve {
  readonly name: string
  readonly title: string
  /** What is loaded, and how. Markdown. */
  readonly text: string
  /** What grows. */
  readonly axis: string
  /** Ascending. The load at the first one is measured again beside each. */
  readonly points: ReadonlyArray<number>
  readonly panels: ReadonlyArray<Panel>
  readonly cloud: Subject
  /** Bare aedes under the same load. */
  readonly bare?: Subject
}

/** What was measured at a point: medians of all rounds. */
export interface MeasuredPoint {
  readonly point: number
  readonly cloud: Figures
  /** The first point, in the same minutes. */
  readonly first: Figures
  readonly bare?: Figures
}

export interface MeasuredCurve {
  readonly name: string
  readonly points: ReadonlyArray<MeasuredPoint>
}
