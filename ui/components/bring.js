// Brings what was opened into sight: on a narrow window the viewer, which stands above the hits; on a wide one the
// highlighted lines of the page, inside the viewer, which scrolls by itself.
export default function (component) {
  const { data, parentElement } = component
  const viewer = document.querySelector(".st-key-viewer")
  if (!viewer || parentElement.brought === data.place) return
  parentElement.brought = data.place
  if (matchMedia("(max-width: 640px)").matches) {
    bring(viewer)
    return
  }
  if (data.share === null) return
  let tries = 20
  const scroll = () => {
    const picture = viewer.querySelector("img")
    if (picture?.complete && picture.clientHeight > 50) {
      const top = picture.getBoundingClientRect().top - viewer.getBoundingClientRect().top + viewer.scrollTop
      const wanted = top + data.share * picture.clientHeight
      const inSight = wanted < viewer.clientHeight * 0.8 // without scrolling: then the title and the buttons stay too
      viewer.scrollTo({ top: inSight ? 0 : wanted - viewer.clientHeight / 3, behavior: "smooth" })
    } else if (tries-- > 0) setTimeout(scroll, 100)
  }
  scroll()
}

// The page is still growing when a link is opened, and moves what was in sight: for three seconds the viewer is brought
// back, unless the reader moves first.
function bring(viewer) {
  let tries = 20
  const again = () => {
    if (Math.abs(viewer.getBoundingClientRect().top) > 100) viewer.scrollIntoView({ block: "start" })
    if (tries-- > 0) setTimeout(again, 150)
  }
  for (const kind of ["wheel", "touchstart", "keydown"]) {
    document.addEventListener(kind, () => (tries = 0), { once: true, passive: true })
  }
  again()
}
