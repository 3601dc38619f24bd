/** Styles that Vite puts into files. */
declare module "*.css"
