// What is wrong with the text of a page as it is seen: called with the least contrast that text has.
(least) => {
  const flaws = new Set(), pieces = [];
  const brief = (node) => node.data.trim().replace(/\s+/g, " ").slice(0, 40);
  if (document.documentElement.scrollWidth > innerWidth)
    flaws.add(`wider than the window: ${document.documentElement.scrollWidth} of ${innerWidth}`);

  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = (colour) => channels(colour).slice(0, 3).map((each) => each / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor, [, , , alpha] = channels(colour);
      if (alpha !== 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const contrast = (element) => {
    const style = getComputedStyle(element);
    const ink = luminance(element.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const [low, high] = [ink, luminance(ground(element))].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };

  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const own = node.parentElement;
    if (!node.data.trim() || own.closest("script, style, title, noscript")) continue;
    if (!own.checkVisibility({ visibilityProperty: true })) continue;
    if (contrast(own) < least) flaws.add(`faint: ${brief(node)}`);
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      let { left, right, top, bottom } = box;
      if (right - left < 1 || bottom - top < 1) continue;
      for (let around = own; around !== document.documentElement; around = around.parentElement) {
        const style = getComputedStyle(around), edge = around.getBoundingClientRect();
        if (style.display === "inline" || style.overflowX === "visible") continue;
        // What is cut to an ellipsis says so, and what scrolls can be scrolled to.
        const cuts = style.overflowX === "hidden" && style.textOverflow !== "ellipsis";
        const inside = right > edge.left && left < edge.right && bottom > edge.top && top < edge.bottom;
        if (cuts && inside && (left < edge.left - 1 || right > edge.right + 1)) flaws.add(`cut: ${brief(node)}`);
        [left, right] = [Math.max(left, edge.left), Math.min(right, edge.right)];
        [top, bottom] = [Math.max(top, edge.top), Math.min(bottom, edge.bottom)];
      }
      if (right - left < 1 || bottom - top < 1) continue;
      if (left < -1 || right > innerWidth + 1) flaws.add(`outside: ${brief(node)}`);
      pieces.push({ node, left, right, top, bottom });
    }
  }
  pieces.sort((a, b) => a.top - b.top);
  pieces.forEach((a, at) => {
    for (const b of pieces.slice(at + 1)) {
      if (b.top > a.bottom - 3) break;
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      if (a.node !== b.node && across > 2 && Math.min(a.bottom, b.bottom) - b.top > 3)
        flaws.add(`on each other: ${brief(a.node)} | ${brief(b.node)}`);
    }
  });
  return [...flaws];
}
